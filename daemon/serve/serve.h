/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One file for each operation: what it means, who may answer. WIRE.md lists the messages.
 *
 * Everything here is called by main's thread within an index transaction. Answers reach the clients only when
 * the transaction is committed. */

#include "home/home.h"
#include "listen/listen.h"
#include "shuntd.h"

/* Serves one request: 0, or a fatal -errno. */
int serve(struct shuntd *, struct listen_request *);

/* The operations. Each fills the answer and returns SERVE_ANSWER, or one of the others, or a fatal -errno. */
enum { SERVE_ANSWER = 0, SERVE_SILENT = 1, SERVE_PARKED = 2 };
typedef int serve_operation(struct shuntd *, const struct listen_request *, struct message *answer);
serve_operation serve_load, serve_lookup, serve_reserve, serve_confirm, serve_withdraw, serve_adopt,
    serve_vanished, serve_remove, serve_gone, serve_rename, serve_renamed, serve_close, serve_promote,
    serve_follow, serve_settle, serve_sync, serve_status, serve_retire, serve_watch, serve_place_of,
    serve_list;

/* Queues an answer until the transaction is committed; jobs use it too. */
int serve_answer(struct shuntd *, const struct listen_request *, struct message *answer);
/* Sends what was queued. 0 or a fatal -errno. */
int serve_flush(struct shuntd *);

/* Parks a request: SERVE_PARKED or a fatal -errno. */
int serve_park(struct shuntd *, struct link *waiting, const struct listen_request *);
/* The directory a request is about, loaded and not closing; else *how is what to return (parked, or
 * NOT_LOADED). */
struct home_dir *serve_dir(struct shuntd *, const struct listen_request *, int which, struct message *answer,
                           int *how);

/* Where an entry lies, as answers say it: BRANCH/MIRROR/LEAF, or empty for the trunk. `to` has
 * SERVE_PLACE_MAX. */
#define SERVE_PLACE_MAX RECORD_NAME_MAX
void serve_place(const struct shuntd *, const struct home_dir *, const struct record_entry *, char *to,
                 struct message *, int which);
/* Where it lies on disk. 0 or -ENAMETOOLONG. */
int serve_path(const struct shuntd *, const struct home_dir *, const struct record_entry *, const char *name,
               size_t length, char to[PATH_MAX]);

/* The branch of a client's node. */
static inline uint16_t serve_branch(const struct shuntd *shuntd, uint64_t client)
{
    uint16_t member = listen_member(client);
    return member == 0 ? shuntd->branch : shuntd->branch_of[member];
}
/* Where a new regular file goes. 0, or -EAGAIN: a leaf must be made first, the job is started: park on
 * dir->waiting; or a fatal -errno. */
int serve_choose(struct shuntd *, struct home_dir *, const char *name, size_t length, uint64_t maker,
                 struct record_entry *place);

/* Leaves of another node's mirrors, which its own daemon makes: it said how that went; it is gone; and there,
 * it is asked. MESSAGE_PLACE carries dir[0], the mirror in name[0], and the directory's place in text. */
int serve_leaf_made(struct shuntd *, uint16_t branch, struct dirid, uint32_t leaf, int result);
int serve_leaves_gone(struct shuntd *, uint16_t branch);
int serve_make_leaf(struct shuntd *, uint32_t leaf, const struct message *);

/* How a flight ended: the index is told, waiters are woken. serve_settle_by_disk asks the file system. */
int serve_ended_well(struct shuntd *, struct flight *, const struct record_entry *made, struct dirid child);
int serve_ended_badly(struct shuntd *, struct flight *);
int serve_settle_by_disk(struct shuntd *, struct flight *);
/* All that a client has left (0: all whose clients stopped waiting) is settled so. */
int serve_settle_client(struct shuntd *, uint64_t client);
/* The two flights of a rename; renamed: MESSAGE_RENAMED, as its sender or the disk tells it. */
int serve_ended_pair(struct shuntd *, struct flight *from, struct flight *to, const struct message *renamed);

/* Begins to write the times of a directory that went quiet to its trunk. */
int serve_quiet(struct shuntd *, struct home_dir *);
/* The end: writes them all now, without jobs. */
void serve_quiet_all(struct shuntd *);
