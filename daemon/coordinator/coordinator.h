/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The home of a directory's own entry, its coordinator: it knows which nodes use the directory, has it loaded, marks it,
 * closes it before it is removed, and begins what concerns it on all nodes (collective.h). Questions to it are messages;
 * `dir` says which directory.
 *
 * LOAD     its place; flags SPREAD: not as a whole, MISPLACED: all daemons hear of the place. Answer: its record, how many
 *          nodes use it, and whether it is delegated to the daemon that asked (delegation.h)
 * MARK     the leaf that is wanted. Answer: its record, with a marker. Its own node's leaf it makes, too
 * FREEZE   for rmdir: 0 it is empty, mirrors and marker are gone, creates wait; NOT_EMPTY; NOT_LOADED
 * THAW     it was not removed
 * DROP     it was removed
 * AWAIT_THAW   0 or NOT_LOADED: it is not about to be removed, or not any more
 * RETURN   the sender has it delegated no more
 * EVICT    the sender has not used it for so long (evict.h). 0: all have forgotten it; BUSY; NOT_LOADED
 * ATTRIBUTES, SYNC, SETTLE, WATCH   as WIRE.md says */

#include "disk/disk.h"
#include "home/home.h"
#include "listen/listen.h"
#include "peer/peers.h"
#include "rpc/collective.h"
#include "shuntd.h"

struct coordinator_call;
/* What follows the coordinator's answer; the coordinator request is freed after it. 0 or a fatal -errno. */
typedef int coordinator_done(struct shuntd *, const struct coordinator_call *, const struct message *answer);

/* A request to a coordinator that is not answered yet, and what goes on with the answer. */
struct coordinator_call {
    struct link link;
    uint64_t id;
    coordinator_done *done;
    uint16_t member; /* that was asked, */
    uint32_t epoch;  /* in this one of the route's */
    uint64_t client; /* that is to be answered, */
    uint32_t qp, tag;
    uint64_t operation; /* or which operation goes on */
    uint32_t size;
    uint8_t bytes[]; /* the question */
};

/* Asks; `coordinator request` says what done needs of it (client, queue pair, tag, operation) and may be NULL like `done`.
 * 0 or a fatal -errno. */
int coordinator_submit(struct shuntd *, const struct message *, coordinator_done *done, const struct coordinator_call *);
/* The same for a client's request, which is answered with the result. */
int coordinator_submit_for(struct shuntd *, const struct message *, const struct listen_request *);
/* `each` with the coordinator, or this daemon, that has not answered a request which was there at *last; *last is the last one
 * then. 0 or what `each` answers. */
int coordinator_each_asked(struct shuntd *, uint64_t *last, rpc_each_member *each);
int coordinator_thaw(struct shuntd *, struct dirid);
int coordinator_thaw_for(struct shuntd *, struct dirid, const struct listen_request *);
int coordinator_drop(struct shuntd *, struct dirid);
int coordinator_dir_created(struct shuntd *, struct dirid, const char *path);

/* Coordinator requests to coordinators that are gone are run again. 0 or a fatal -errno. */
int coordinator_resubmit(struct shuntd *);
/* What waits at this coordinator is looked at again. 0 or a fatal -errno. */
int coordinator_resume_all(struct shuntd *);
/* That one is no member any more: what its processes were about to remove is thawed. 0 or a fatal -errno. */
int coordinator_member_gone(struct shuntd *, uint16_t member);

/* While a member is silent for longer than the deadline, requests that wait for a directory to be loaded are told so
 * (-ETIMEDOUT) and may be repeated; what is under way goes on. 0 or a fatal -errno. */
int coordinator_give_up(struct shuntd *);

/* At both ends of the channel to another daemon. */
int coordinator_receive(struct shuntd *, uint16_t member, uint64_t id, const struct message *);
int coordinator_answered(struct shuntd *, uint64_t id, const struct message *answer);
/* No name of a directory that is to be removed is held any more at one of its homes. */
int coordinator_dir_idle(struct shuntd *, struct dirid);

/* For the parts of it: a question, until it is answered. */
struct coordinator_request {
    struct link link;
    uint16_t member;
    uint64_t id;
    uint64_t began;         /* FREEZE: monotonic, when it was tried first; 0: not yet */
    struct message message; /* points into bytes */
    uint8_t bytes[];
};
/* Answers it and frees it; requests that waited for the coordinator are served again. 0 or a fatal -errno. */
int coordinator_answer(struct shuntd *, struct coordinator_request *, struct message *answer);
int coordinator_result(struct shuntd *, struct coordinator_request *, int result);
/* Is the member that asks it gone? */
bool coordinator_is_left(const struct shuntd *, const struct coordinator_request *);
/* Another daemon is home of its directory now. */
int coordinator_pass_on(struct shuntd *, struct coordinator_request *);
/* That member's processes use the directory: 1, 0 if that was known, -ENOMEM. */
int coordinator_add_node(struct home_coordinator *, uint16_t member);
/* No home has anything of its directory any more, or another daemon is its coordinator. */
void coordinator_forget(struct home_coordinator *);
/* Of a directory that nobody uses any more nothing is kept. */
void coordinator_let_go(struct home_dir *);
void coordinator_free(struct shuntd *);
/* Serves it again from the start. */
int coordinator_serve(struct shuntd *, struct coordinator_request *);
/* The coordinator is not busy any more (its operation has said so before it answered, since a client that is answered may ask
 * again at once): waiting requests are served. It may be gone. */
int coordinator_resume(struct shuntd *, struct dirid);
/* A job of a coordinator's, which may change a trunk directory by what was known when it began; its `finish` says that it has
 * ended, and in which epoch of the route it began. Where all begins again, nobody else is coordinator before (recovery.h). */
void coordinator_begin_job(struct shuntd *, struct disk_job *);
void coordinator_end_job(struct shuntd *, uint32_t began);
/* May such a job change something that is there for others? Without a lease they may have gone on without this daemon. From any
 * thread. */
bool coordinator_has_lease(const struct shuntd *);
/* The same for what is listed (struct union_root), of a struct shuntd. */
bool coordinator_may_settle(const void *shuntd);
/* The operations: with a directory that is loaded (but LOAD) and whose coordinator is neither busy nor closed. */
typedef int coordinator_operation(struct shuntd *, struct home_dir *, struct coordinator_request *);
coordinator_operation coordinator_load, coordinator_mark, coordinator_freeze, coordinator_tell_all,
    coordinator_tell_all_if_marked, coordinator_settle, coordinator_evict, freeze_is_over;
struct coordinator_handlers {
    coordinator_operation *operation[MESSAGE_TYPES]; /* NULL: no such request */
    /* What clients have done by grants is to be seen before times are told; and before a directory is pinned. 0 or a fatal
     * -errno. */
    int (*see_grants)(struct shuntd *);
    int (*settle_grants)(struct shuntd *, const struct home_dir *);
};

/* A directory's record. Word of it comes on two channels, with answers and by collectives, and not in the order in which
 * it was sent: its coordinator numbers what it decides, and an older record is passed over. */
void coordinator_number_decision(struct shuntd *, struct home_dir *);
#define COORDINATOR_EPOCH_BITS 32 /* below the epoch of the homes in such a number */
/* What is decided from now on, of any directory, has a higher number than what was of this one, of which nothing is kept. */
void coordinator_outnumber(struct shuntd *, const struct home_dir *);
void coordinator_put_record(struct message_record *, const struct home_dir *);
/* What it says of marker and mirror; its reason only if the directory is watched. */
void coordinator_adopt_record(struct home_dir *, const struct message_record *);
/* The same of what the coordinator answers, which it does when all daemons have heard of it. */
void coordinator_adopt_answer(struct home_dir *, const struct message_record *);
/* An item of kind RPC_COORDINATOR or RPC_COORDINATOR_ANSWER. 0 or a fatal -errno. */
int coordinator_take_item(struct shuntd *, uint16_t member, const struct frame_item *);
collective_part freeze_part_freeze, freeze_part_thaw, freeze_part_drop;
/* A directory that was handed over to this home is frozen, or was when it was sent: it thaws here when that is over, of which
 * this daemon may have heard before it had it. 0 or a fatal -errno. */
int freeze_await_thaw(struct shuntd *, struct dirid);
