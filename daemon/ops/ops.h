/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One file for each operation: what it means, who may answer. WIRE.md lists the messages.
 *
 * Everything here is called by main's thread within a batch, at the end of which the answers reach the clients. */

#include "home/home.h"
#include "listen/listen.h"
#include "shuntd.h"

/* Serves one request: 0, or a fatal -errno. */
int ops_serve(struct shuntd *, struct listen_request *);

/* The operations. Each fills the answer and returns REPLY_ANSWER, or one of the others, or a fatal -errno. */
enum { REPLY_ANSWER = 0, REPLY_SILENT = 1, REPLY_BLOCKED = 2 };
/* What an operation returns whose answer, if any, was or will be told by itself. */
static inline int reply_silently(int code)
{
    return code == 0 ? REPLY_SILENT : code;
}
typedef int ops_function(struct shuntd *, const struct listen_request *, struct message *answer);
ops_function ops_load, ops_lookup, ops_create, ops_commit, ops_abort, ops_adopt, ops_vanished, ops_unlink, ops_unlinked,
    ops_rename, ops_renamed, ops_rmdir, ops_promote, ops_about_directory, ops_status, ops_ping, ops_place_of, ops_list,
    ops_looked, ops_stop;

/* Queues an answer until the end of the batch; jobs use it too. */
int reply_answer(struct shuntd *, const struct listen_request *, struct message *answer);
int reply_send(struct shuntd *, uint64_t client, uint32_t qp, uint32_t tag, struct message *answer);
/* The same with an entry and its place, to who began the operation. */
int reply_place(struct shuntd *, const struct operation *, const struct record_entry *, int result);
int reply_result(struct shuntd *, const struct operation *, int result);
/* Sends what was queued. */
void reply_flush(struct shuntd *);

/* Blocks a request: REPLY_BLOCKED or a fatal -errno. */
int reply_block(struct shuntd *, struct link *waiting, const struct listen_request *);
/* The directory a request is about, known to this node's processes; else *how is what to return (blocked, or
 * NOT_LOADED). */
struct home_dir *reply_dir(struct shuntd *, const struct listen_request *, int which, struct message *answer, int *how);
/* It is not known after all: a home of its names says so. 0 or a fatal -errno. */
int reply_forget_dir(struct shuntd *, struct home_dir *);

/* Asks the home of a operation's name; `then` goes on with the answer, at once or later. 0 or a fatal -errno. Where
 * the directory is not known there any more, or the name has another home now, the request is told so, or begun
 * again, and `then` is not called. */
int home_rpc_request(struct shuntd *, struct operation *, enum name_op, unsigned flags, const struct record_entry *,
                     operation_next *then);
/* Its home is to know that a process has asked for what was predicted. 0 or a fatal -errno. */
int home_rpc_requested(struct shuntd *, const struct operation *);
/* The answer of another daemon. */
int home_rpc_answered(struct shuntd *, struct operation *, const struct name_answer *);
/* What was asked of daemons that are no members any more is asked again. 0 or a fatal -errno. */
int home_rpc_repeat(struct shuntd *);
/* Listings that waited for the homes to be others. */
int list_again(struct shuntd *);
void list_free(struct shuntd *);
/* Ends a operation whose name is from now on that (NULL: nothing), if it holds it. */
int home_rpc_end(struct shuntd *, struct operation *, const struct record_entry *);
/* Ends it, and its partner: all is as before. */
int home_rpc_abort(struct shuntd *, struct operation *);
/* The same, and its request is served again from the start. */
int home_rpc_restart(struct shuntd *, struct operation *);

/* Where an entry lies, as answers say it: BRANCH/MIRROR/LEAF, or empty for the trunk. `to` has
 * SERVE_PLACE_MAX. */
#define SERVE_PLACE_MAX RECORD_NAME_MAX
void reply_put_place(const struct shuntd *, const struct home_dir *, const struct record_entry *, char *to, struct message *,
                     int which);
/* Where it lies on disk. 0 or -ENAMETOOLONG. */
int reply_path(const struct shuntd *, const struct home_dir *, const struct record_entry *, const char *name, size_t length,
               char to[PATH_MAX]);

/* Do new regular files go to this node's branch? */
bool placement_dir_redirects(const struct shuntd *, const struct home_dir *);
/* From now on they stay in the trunk; those that are granted in a branch are taken back. 0 or a fatal -errno. */
int placement_pin(struct shuntd *, struct home_dir *, enum record_why);
/* Where a new regular file goes. 0, or -EAGAIN: a leaf must be made first, that is under way: park on
 * dir->waiting; or a fatal -errno. */
int placement_choose(struct shuntd *, struct home_dir *, const char *name, size_t length, uint64_t stream,
                     struct record_entry *place);
/* The same for a name that was predicted, for which none is made: *fresh would be its number. */
int placement_choose_prefetched(struct shuntd *, struct home_dir *, const char *name, size_t length, uint64_t stream,
                                struct record_entry *place, uint32_t *fresh);

/* What follows where a process may begin: the directory changes, and what it will ask for next is asked for ahead. 0 or a fatal
 * -errno. */
int create_begins(struct shuntd *, struct operation *);
int unlink_begins(struct shuntd *, struct operation *);

/* How a operation ended: the index is told, waiters are woken. completion_settle_by_disk asks the file system. */
int completion_succeeded(struct shuntd *, struct operation *, const struct record_entry *made, struct dirid child);
int completion_failed(struct shuntd *, struct operation *);
int completion_settle_by_disk(struct shuntd *, struct operation *);
/* All that a client has left (0: all whose clients stopped waiting) is settled so. */
int completion_settle_client(struct shuntd *, uint64_t client);
/* All names that a daemon which has died held at this home: what is at their places is there. */
int completion_settle_member(struct shuntd *, uint16_t member);
/* The two operations of a rename; renamed: MESSAGE_RENAMED, as its sender or the disk tells it. */
int completion_pair(struct shuntd *, struct operation *from, struct operation *to, const struct message *renamed);
