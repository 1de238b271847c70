/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Names that are asked for before any process does.
 *
 * A process that makes ckpt.0001, ckpt.0002, ckpt.0003, ckpt.0004 will make ckpt.0005; one that removes them will remove that.
 * Where another daemon is home of it, its daemon asks for it meanwhile: for several names in one frame, and when their
 * process asks, it is answered here. So such a create or unlink waits for no network, as a file that is read in order is
 * read ahead. And some of the next names, those with a home here, too, are granted to the process (grant.h), which then
 * need not even ask.
 *
 * Renames are foreseen likewise (rename_ahead.c), and those within one directory are granted; of what a thread makes and then
 * renames each time, the create and the rename as one.
 *
 * To its home this is a create or an unlink whose process takes its time (here an operation that is prefetched), and each rule
 * about those holds. It is pending or dying in the index, so it is nowhere told to be there or to be absent without a look; a
 * request for it waits for its end, and the home tells so (NOTIFY_AWAITED), on which it is given back, unless its process has
 * asked by then. It is also given back where another request of this node is about that name; where its file would go elsewhere
 * by now; when its process has named nothing from one tick to the next, or goes on with other names; and when this daemon ends.
 * In what is given back nothing was begun: nothing is to be looked for on disk. And whose names were predicted wrongly has to
 * name more of them in a row the next time. */

#include "home/home.h"
#include "listen/listen.h"
#include "shuntd.h"

int prefetch_create(struct prefetch **);
void prefetch_destroy(struct prefetch *);

/* The process of that operation, a create or an unlink, was just told that it may begin: what it will ask for next, if that can
 * be predicted, and is in a branch, is asked for. 0 or a fatal -errno. */
int prefetch_follow(struct shuntd *, const struct operation *last);
/* The same of a rename whose process was just told that it may begin. */
int prefetch_follow_rename(struct shuntd *, const struct operation *from, const struct operation *to);
/* A process says that it has made that: does its claim go on, since its thread is about to rename it? 0 or a fatal -errno. */
int prefetch_keep(struct shuntd *, struct operation *, const struct record_entry *made, bool *is_kept);
/* What a process has made by a grant it renames by the same: its create is over, its claim goes on. 0 or a fatal -errno. */
int prefetch_keep_for_rename(struct shuntd *, struct operation *, const struct record_entry *made);
/* The operation on one of a rename's names, if it was prefetched, which is the request's from now on: its home has answered, or
 * will; or NULL. 0 or a fatal -errno. */
int prefetch_take_rename(struct shuntd *, const struct listen_request *, enum operation_kind, struct operation **taken);
/* What was prefetched is the request's from now on, if it is that and `fits`, and goes on or will. Else it is
 * given back. 0 or a fatal -errno. */
int prefetch_attach_request(struct shuntd *, const struct listen_request *, enum operation_kind, bool fits, bool *claimed);
/* Its home has given it, and no process has asked for it: then nothing else changes it, and what it was is what it is. So a
 * process that looks at a name before it makes or removes it needs no other daemon, either. */
bool prefetch_knows(const struct operation *);
struct name_answer prefetch_answer(const struct operation *); /* MESSAGE_EXISTS, MESSAGE_ABSENT */
/* Nothing that is only asked for ahead stands in the way of a request, but for CREATE and UNLINK, which claim, and LOOKUP,
 * which is answered; and what was granted of its names is settled. 0 or a fatal -errno. */
int prefetch_make_way(struct shuntd *, const struct message *);
/* It is given back, and granted to nobody. 0 or a fatal -errno. */
int prefetch_give_back(struct shuntd *, struct operation *);
/* All homes begin again, and none of them has given anything: nothing is asked for ahead any more. 0 or a fatal -errno. */
int prefetch_forget(struct shuntd *);
/* Its home has given it, and it can be granted. 0 or a fatal -errno. */
int prefetch_granted(struct shuntd *, const struct operation *);
/* A client has ended: what was predicted of it is given back, and what it took is its own. 0 or a fatal -errno. */
int prefetch_client_exits(struct shuntd *, uint64_t client);
/* A leaf was looked into: if its owner is to go on in another one, so is what was predicted. 0 or a fatal -errno. */
int prefetch_leave_leaf(struct shuntd *, const struct home_dir *, uint32_t leaf);
/* With each tick: those that nobody has asked for since the last one are given back; all, when this daemon is to end. 0
 * or a fatal -errno. */
int prefetch_tick(struct shuntd *);
