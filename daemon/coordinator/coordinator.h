/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The home of a directory's own entry, its ruler: it knows which nodes use the directory, has it loaded, marks it,
 * closes it before it is removed, and begins what concerns it on all nodes (cast.h). Questions to it are messages;
 * dir[0] says which directory.
 *
 * LOAD     text: its place; SPREAD in flags: not as a whole. Answer: its record, in tag how many nodes use it, in dir[1]
 *          whether it is wholly at home with who asked (whole.h)
 * MARK     tag: the leaf that is wanted. Answer: its record, with a marker. Its own node's leaf it makes, too
 * SEAL     for rmdir: 0 it is empty, mirrors and marker are gone, births wait; NOT_EMPTY; NOT_LOADED
 * UNSEAL   it was not removed
 * DROP     it was removed
 * GIVEN    it is not wholly at home with who says so any more
 * FOLLOW, SYNC, SETTLE, WATCH   as WIRE.md says */

#include "home/home.h"
#include "ops/ops.h"

struct errand;
/* What follows the ruler's answer; the errand is freed behind it. 0 or a fatal -errno. */
typedef int errand_done(struct shuntd *, const struct errand *, const struct message *answer);

/* A question to a ruler that was not answered yet, and for whom. */
struct errand {
    struct link link;
    uint64_t id;
    errand_done *done;
    uint16_t member; /* that was asked, */
    uint32_t epoch;  /* in this one of the route's */
    uint64_t client; /* who is to be answered, */
    uint32_t lane, tag;
    uint64_t flight; /* or which flight goes on, */
    void *job;       /* or which job */
    uint32_t size;
    uint8_t bytes[]; /* the question */
};

/* Asks; `errand` says what done needs of it (client, lane, tag, flight, job) and may be NULL like `done`. 0 or a
 * fatal -errno. */
int rule_ask(struct shuntd *, const struct message *, errand_done *done, const struct errand *);
/* The same for a client's request, which is answered with the result. */
int rule_ask_for(struct shuntd *, const struct message *, const struct listen_request *);
int rule_unseal(struct shuntd *, struct dirid);
int rule_unseal_for(struct shuntd *, struct dirid, const struct listen_request *);
int rule_drop(struct shuntd *, struct dirid);
int rule_born(struct shuntd *, struct dirid, const char *path);

/* Errands to rulers that are gone are run again. 0 or a fatal -errno. */
int rule_ask_again(struct shuntd *);
/* What waits at this ruler is looked at again. 0 or a fatal -errno. */
int rule_rest_all(struct shuntd *);

/* While a member is silent for longer than the deadline, who waits for a directory to be loaded is told so
 * (-ETIMEDOUT) and may ask again; what is under way goes on. 0 or a fatal -errno. */
int rule_give_up(struct shuntd *);

/* At both ends of the road to another daemon. */
int rule_take(struct shuntd *, uint16_t member, uint64_t id, const struct message *);
int rule_answered(struct shuntd *, uint64_t id, const struct message *answer);
/* No name of a directory that is to be removed is held any more at one of its homes. */
int rule_idle(struct shuntd *, struct dirid);

/* For the parts of it: a question, until it is answered. */
struct rule_question {
    struct link link;
    uint16_t member;
    uint64_t id;
    uint64_t began;         /* SEAL: monotonic, when it was tried first; 0: not yet */
    struct message message; /* points into bytes */
    uint8_t bytes[];
};
/* Answers it and frees it; who waited for the ruler is served again. 0 or a fatal -errno. */
int rule_answer(struct shuntd *, struct rule_question *, struct message *answer);
int rule_result(struct shuntd *, struct rule_question *, int result);
/* Another daemon is home of its directory now. */
int rule_pass_on(struct shuntd *, struct rule_question *);
/* That member's processes use the directory: 1, 0 if that was known, -ENOMEM. */
int rule_add_node(struct home_ruler *, uint16_t member);
/* No home has anything of its directory any more, or another daemon rules it. */
void rule_forget(struct home_ruler *);
void rule_free(struct shuntd *);
/* Serves it again from the start. */
int rule_work(struct shuntd *, struct rule_question *);
/* The ruler is not busy any more (its operation has said so before it answered, since who is answered may ask
 * again at once): who waited is served. It may be gone. */
int rule_rest(struct shuntd *, struct dirid);
/* The operations: with a directory that is loaded (but LOAD) and whose ruler is neither busy nor closed. */
typedef int rule_operation(struct shuntd *, struct home_dir *, struct rule_question *);
rule_operation rule_load, rule_mark, rule_seal;

/* A directory's record. Word of it comes on two roads, with answers and by collectives, and not in the order in which
 * it was sent: its ruler numbers what it decides, and an older record is passed over. */
void rule_decides(struct shuntd *, struct home_dir *);
#define RULE_EPOCH_BITS 24 /* below the epoch of the homes in such a number */
void rule_put_record(struct message *, const struct home_dir *);
/* What it says of marker and mirror; its reason only if the directory is watched. */
void rule_take_record(struct home_dir *, const struct message *);
/* The same of what the ruler answers, which it does when all daemons have heard of it. */
void rule_take_answer(struct home_dir *, const struct message *);
