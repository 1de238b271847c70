/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The road between daemons, at both of its ends: what they ask each other, and who is there. RELAY.md lists the
 * items. */

#include "peer/peers.h"
#include "ops/ops.h"

enum relay_kind {
    RELAY_ASK = 1,     /* to the home of a name: a question, by that flight */
    RELAY_REPLY,       /* ... its answer */
    RELAY_RULE,        /* to the home of a directory (rule.h); an id of 0 wants no answer */
    RELAY_RULE_ANSWER, /* ... its answer */
    RELAY_CAST,        /* a collective (cast.h): to so many, the first of whom is meant */
    RELAY_CAST_ANSWER, /* ... what they say together */
    RELAY_LISTED,      /* to a home: a name of a directory that is being loaded */
    RELAY_NEWS,        /* what wants no answer: NODES, LOOKED, IDLE, TIMES, AWAITED, WANTED */
    RELAY_MOVE,        /* to the next home: a part of what a shard holds (move.h) */
    RELAY_HELLO,       /* to a home: who sends this has joined */
    RELAY_WELCOME,     /* ... it knows */
};

/* Asks another daemon, or tells it the end of a name, which travels with other things if nobody waits for it. 0 or a fatal
 * -errno. */
int relay_ask(struct shuntd *, uint16_t member, const struct name_question *);
int relay_end(struct shuntd *, uint16_t member, const struct name_question *, bool awaited);
int relay_message(struct shuntd *, uint16_t member, enum relay_kind, uint64_t id, const struct message *);
/* A name of a directory that is being loaded. */
int relay_name(struct shuntd *, uint16_t member, const struct home_dir *, const char *name, size_t length,
               const struct record_entry *);
/* A message about a name, with its branch by its name, which is the same for all. */
struct message relay_about(const struct shuntd *, struct dirid, const char *name, size_t length, const struct record_entry *);
/* The other way: the branch gets a number here. 0, -EBADMSG or a fatal -errno. */
int relay_entry(struct shuntd *, const struct message *, struct record_entry *);
/* The member that has that branch, 0: nobody. */
uint16_t relay_member_of(const struct shuntd *, uint16_t branch);

/* Serves what other daemons sent: 0, or a fatal -errno. */
int relay_items(struct shuntd *);
/* Questions that waited have their answers now; what others are to hear is told. */
int relay_questions(struct shuntd *);
/* Something for a member to acknowledge. 0 or -ENOMEM. */
int relay_greet(struct shuntd *, uint16_t member);
/* Does anything here wait for another daemon? */
bool relay_waits(const struct shuntd *);

/* Says to a home that this daemon has joined, and waits for its word, at most `deadline` ns. 0 or -ETIMEDOUT or
 * another -errno. */
int relay_join(struct shuntd *, uint64_t deadline);

/* shuntd->session is in force: who is a member now, who is home of what. The fabric is open. 0 or -errno. */
int relay_adopt(struct shuntd *);
/* Looks whether a newer epoch is in force. 0 or a fatal -errno. */
int relay_look(struct shuntd *);
/* Takes what is in force, whatever shuntd->session says. */
int relay_reread(struct shuntd *);
/* An item that was kept (move_keep). */
int relay_kept(struct shuntd *, uint16_t member, const struct frame_item *);
/* This daemon is no member any more: the others hear of it at once. */
void relay_leave(struct shuntd *);
/* Once the fabric is open, the session is told where this daemon is reached; till then nobody can join. 0 or
 * a fatal -errno. */
int relay_tell_address(struct shuntd *);
