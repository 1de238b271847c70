/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Collectives: what concerns a directory as a whole is told to, or asked of, every daemon of the session along a
 * binary tree, and the answers are combined on the way back, so that the longest path grows with the logarithm of
 * their number (Carns et al., Using Server-to-Server Communication in Parallel File Systems to Simplify
 * Consistency and Improve Performance, 2008). Whoever begins one hands half of the others to each of two, who do
 * the same with theirs.
 *
 * The operations are messages: dir[0] says which directory. */

#include "home/home.h"
#include "ops/ops.h"

/* How it went: the first -errno, else the highest of the results. `page` and `used`: the names of MESSAGE_LIST, all
 * up to `limit` (page.h), or the counters of MESSAGE_STATUS. 0 or a fatal -errno. */
struct cast_end {
    int result;
    const char *page;
    size_t used;
    uint64_t limit;
    bool lost;     /* a daemon that was to answer is gone */
    unsigned hops; /* messages on the longest way, there and back */
};
typedef int cast_done(struct shuntd *, void *context, const struct cast_end *);

/* 0 or a fatal -errno; `done` (or NULL) is called at the end, perhaps at once. `expected` (or NULL) is what
 * MESSAGE_KNOWN tells each member: how many names it was sent. */
int cast_begin(struct shuntd *, const struct message *, const uint32_t *expected, cast_done *done, void *context);
/* A directory was renamed. */
int cast_moved(struct shuntd *, const char *from, const char *to);

/* What came from another daemon. */
int cast_take(struct shuntd *, uint16_t member, uint64_t id, const uint8_t *bytes, size_t size);
int cast_answered(struct shuntd *, uint16_t member, uint64_t id, const uint8_t *bytes, size_t size);
/* A daemon is a member no more: its answers are not waited for. */
int cast_gone(struct shuntd *, uint16_t member);
/* Those that waited for a directory to rest go on. */
int cast_resume(struct shuntd *);
bool cast_is_under_way(const struct shuntd *);
void cast_free(struct shuntd *);

/* What each daemon does. CAST_LATER: cast_resume comes back to it; CAST_WORKS: cast_finish says how it went. */
#define CAST_LATER 1000
#define CAST_WORKS 1001
struct cast;
typedef int cast_part(struct shuntd *, struct cast *, const struct message *);
cast_part cast_known, cast_record, cast_seal, cast_unseal, cast_drop, cast_settle, cast_sync, cast_watch, cast_list, cast_place,
    cast_moved_on, cast_moving, cast_status, cast_stop;
int cast_finish(struct shuntd *, struct cast *, int result);
/* For the parts. */
uint32_t cast_expected(const struct cast *);
bool cast_is_mine(const struct cast *);    /* it was begun here */
bool cast_has_waited(const struct cast *); /* CAST_LATER once */
void cast_wait(struct cast *, struct home_dir *);
void cast_wait_on(struct cast *, struct link *list);
/* Of MESSAGE_LIST: how large a page is to be. */
size_t cast_room(const struct cast *);
/* Of MESSAGE_LIST: a page of this daemon's names. Of MESSAGE_STATUS: its counters. 0 or -ENOMEM. */
int cast_page(struct cast *, const char *page, size_t used, uint64_t limit);
/* Adds the counters of one page to those of another, of `used` bytes; how many it has then (status.c). Pure. */
size_t status_add(char *to, size_t used, const char *from, size_t size);
