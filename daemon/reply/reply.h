/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What is said to a client: answers are queued, and go out together at the end of a batch. And what every operation asks
 * first: is the directory known here, where does an entry lie. */

#include "home/home.h"
#include "listen/listen.h"
#include "shuntd.h"

/* What a function that serves a request returns besides a fatal -errno: the answer is to be sent; it was or will be sent, or
 * none is wanted; the request waits. */
enum { REPLY_ANSWER = 0, REPLY_SILENT = 1, REPLY_BLOCKED = 2 };
/* What an operation returns whose answer, if any, was or will be told by itself. */
static inline int reply_silently(int code)
{
    return code == 0 ? REPLY_SILENT : code;
}
/* Queues an answer until the end of the batch; jobs use it too. */
int reply_answer(struct shuntd *, const struct listen_request *, struct message *answer);
int reply_send(struct shuntd *, uint64_t client, uint32_t qp, uint32_t tag, struct message *answer);
/* The same with an entry and its place, to the client that began the operation. */
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

/* Where an entry lies, as answers say it: BRANCH/MIRROR/LEAF, or empty for the trunk. `to` has
 * REPLY_PLACE_MAX. */
#define REPLY_PLACE_MAX RECORD_NAME_MAX
void reply_put_place(const struct shuntd *, const struct home_dir *, const struct record_entry *, char *to, struct message *,
                     int which);
/* Where it lies on disk. 0 or -ENAMETOOLONG. */
int reply_path(const struct shuntd *, const struct home_dir *, const struct record_entry *, const char *name, size_t length,
               char to[PATH_MAX]);
