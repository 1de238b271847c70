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
int serve(struct shuntd *, struct listen_request *);

/* The operations. Each fills the answer and returns SERVE_ANSWER, or one of the others, or a fatal -errno. */
enum { SERVE_ANSWER = 0, SERVE_SILENT = 1, SERVE_PARKED = 2 };
/* What an operation returns whose answer, if any, was or will be told by itself. */
static inline int serve_silently(int code)
{
    return code == 0 ? SERVE_SILENT : code;
}
typedef int serve_operation(struct shuntd *, const struct listen_request *, struct message *answer);
serve_operation serve_load, serve_lookup, serve_reserve, serve_confirm, serve_withdraw, serve_adopt, serve_vanished,
    serve_remove, serve_gone, serve_rename, serve_renamed, serve_close, serve_promote, serve_about_directory, serve_status,
    serve_ping, serve_place_of, serve_list, serve_looked, serve_stop;

/* Queues an answer until the end of the batch; jobs use it too. */
int serve_answer(struct shuntd *, const struct listen_request *, struct message *answer);
int serve_reply(struct shuntd *, uint64_t client, uint32_t lane, uint32_t tag, struct message *answer);
/* The same with an entry and its place, to who began the flight. */
int serve_tell_place(struct shuntd *, const struct flight *, const struct record_entry *, int result);
int serve_tell_result(struct shuntd *, const struct flight *, int result);
/* Sends what was queued. */
void serve_flush(struct shuntd *);

/* Parks a request: SERVE_PARKED or a fatal -errno. */
int serve_park(struct shuntd *, struct link *waiting, const struct listen_request *);
/* The directory a request is about, known to this node's processes; else *how is what to return (parked, or
 * NOT_LOADED). */
struct home_dir *serve_dir(struct shuntd *, const struct listen_request *, int which, struct message *answer, int *how);
/* It is not known after all: a home of its names says so. 0 or a fatal -errno. */
int serve_forget(struct shuntd *, struct home_dir *);

/* Asks the home of a flight's name; `then` goes on with the answer, at once or later. 0 or a fatal -errno. Where
 * the directory is not known there any more, or the name has another home now, the request is told so, or begun
 * again, and `then` is not called. */
int serve_ask(struct shuntd *, struct flight *, enum name_op, unsigned flags, const struct record_entry *, flight_next *then);
/* Its home is to know that a process has asked for what was foreseen. 0 or a fatal -errno. */
int serve_tell_claimed(struct shuntd *, const struct flight *);
/* The answer of another daemon. */
int serve_answered(struct shuntd *, struct flight *, const struct name_answer *);
/* What was asked of daemons that are no members any more is asked again. 0 or a fatal -errno. */
int serve_ask_again(struct shuntd *);
/* Listings that waited for the homes to be others. */
int list_again(struct shuntd *);
void list_free(struct shuntd *);
/* Ends a flight whose name is from now on that (NULL: nothing), if it holds it. */
int serve_end(struct shuntd *, struct flight *, const struct record_entry *);
/* Ends it, and its partner: all is as before. */
int serve_release(struct shuntd *, struct flight *);
/* The same, and its request is served again from the start. */
int serve_restart(struct shuntd *, struct flight *);

/* Where an entry lies, as answers say it: BRANCH/MIRROR/LEAF, or empty for the trunk. `to` has
 * SERVE_PLACE_MAX. */
#define SERVE_PLACE_MAX RECORD_NAME_MAX
void serve_place(const struct shuntd *, const struct home_dir *, const struct record_entry *, char *to, struct message *,
                 int which);
/* Where it lies on disk. 0 or -ENAMETOOLONG. */
int serve_path(const struct shuntd *, const struct home_dir *, const struct record_entry *, const char *name, size_t length,
               char to[PATH_MAX]);

/* Do new regular files go to this node's branch? */
bool serve_redirects(const struct shuntd *, const struct home_dir *);
/* From now on they stay in the trunk; those that are offered in a branch are taken back. 0 or a fatal -errno. */
int serve_stay(struct shuntd *, struct home_dir *, enum record_why);
/* Where a new regular file goes. 0, or -EAGAIN: a leaf must be made first, that is under way: park on
 * dir->waiting; or a fatal -errno. */
int serve_choose(struct shuntd *, struct home_dir *, const char *name, size_t length, uint64_t maker,
                 struct record_entry *place);
/* The same for a name that was foreseen, for which none is made: *fresh would be its number. */
int serve_choose_ahead(struct shuntd *, struct home_dir *, const char *name, size_t length, uint64_t maker,
                       struct record_entry *place, uint32_t *fresh);

/* What follows where a process may begin: the directory changes, and what it will ask for next is asked for ahead. 0 or a fatal
 * -errno. */
int serve_birth_begins(struct shuntd *, struct flight *);
int serve_removal_begins(struct shuntd *, struct flight *);

/* How a flight ended: the index is told, waiters are woken. serve_settle_by_disk asks the file system. */
int serve_ended_well(struct shuntd *, struct flight *, const struct record_entry *made, struct dirid child);
int serve_ended_badly(struct shuntd *, struct flight *);
int serve_settle_by_disk(struct shuntd *, struct flight *);
/* All that a client has left (0: all whose clients stopped waiting) is settled so. */
int serve_settle_client(struct shuntd *, uint64_t client);
/* All names that a daemon which has died held at this home: what is at their places is there. */
int serve_settle_member(struct shuntd *, uint16_t member);
/* The two flights of a rename; renamed: MESSAGE_RENAMED, as its sender or the disk tells it. */
int serve_ended_pair(struct shuntd *, struct flight *from, struct flight *to, const struct message *renamed);
