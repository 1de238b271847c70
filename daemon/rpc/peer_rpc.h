/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The channel between daemons, at both of its ends: what they ask each other, and who is there. RELAY.md lists the
 * items. */

#include "peer/peers.h"
#include "ops/ops.h"

enum rpc_kind {
    RPC_HOME_REQUEST = 1,   /* to the home of a name: a question, by that operation */
    RPC_HOME_REPLY,         /* ... its answer */
    RPC_COORDINATOR,        /* to the home of a directory (rule.h); an id of 0 wants no answer */
    RPC_COORDINATOR_ANSWER, /* ... its answer */
    RPC_COLLECTIVE,         /* a collective (cast.h): to so many, the first of whom is meant */
    RPC_COLLECTIVE_ANSWER,  /* ... what they say together */
    RPC_LISTED,             /* to a home: a name of a directory that is being loaded */
    RPC_NOTIFY,             /* what wants no answer: NODES, LOOKED, IDLE, TIMES, AWAITED, WANTED */
    RPC_MIGRATE,            /* to the next home: a part of what a shard holds (move.h) */
    RPC_HELLO,              /* to a home: who sends this has joined */
    RPC_WELCOME,            /* ... it knows */
};

/* Asks another daemon, or tells it the end of a name, which travels with other things if nobody waits for it. 0 or a fatal
 * -errno. */
int rpc_home_request(struct shuntd *, uint16_t member, const struct name_question *);
int rpc_home_release(struct shuntd *, uint16_t member, const struct name_question *, bool awaited);
int rpc_message(struct shuntd *, uint16_t member, enum rpc_kind, uint64_t id, const struct message *);
/* A name of a directory that is being loaded. */
int rpc_name(struct shuntd *, uint16_t member, const struct home_dir *, const char *name, size_t length,
             const struct record_entry *);
/* A message about a name, with its branch by its name, which is the same for all. */
struct message rpc_name_message(const struct shuntd *, struct dirid, const char *name, size_t length,
                                const struct record_entry *);
/* The other way: the branch gets a number here. 0, -EBADMSG or a fatal -errno. */
int rpc_entry(struct shuntd *, const struct message *, struct record_entry *);
/* The member that has that branch, 0: nobody. */
uint16_t rpc_member_of(const struct shuntd *, uint16_t branch);

/* Serves what other daemons sent: 0, or a fatal -errno. */
int rpc_receive_all(struct shuntd *);
/* Questions that waited have their answers now; what others are to hear is told. */
int rpc_resume(struct shuntd *);
/* Something for a member to acknowledge. 0 or -ENOMEM. */
int rpc_greet(struct shuntd *, uint16_t member);
/* Does anything here wait for another daemon? */
bool rpc_waits(const struct shuntd *);

/* Says to a home that this daemon has joined, and waits for its word, at most `deadline` ns. 0 or -ETIMEDOUT or
 * another -errno. */
int rpc_join_session(struct shuntd *, uint64_t deadline);

/* shuntd->session is in force: who is a member now, who is home of what. The fabric is open. 0 or -errno. */
int rpc_adopt_session(struct shuntd *);
/* Looks whether a newer epoch is in force. 0 or a fatal -errno. */
int rpc_refresh_session(struct shuntd *);
/* Takes what is in force, whatever shuntd->session says. */
int rpc_reread_session(struct shuntd *);
/* An item that was kept (migration_defer). */
int rpc_receive_deferred(struct shuntd *, uint16_t member, const struct frame_item *);
/* This daemon is no member any more: the others hear of it at once. */
void rpc_leave_session(struct shuntd *);
/* Once the fabric is open, the session is told where this daemon is reached; till then nobody can join. 0 or
 * a fatal -errno. */
int rpc_publish_address(struct shuntd *);
