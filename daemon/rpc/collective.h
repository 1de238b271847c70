/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Collectives: what concerns a directory as a whole is told to, or asked of, every daemon of the session along a
 * binary tree, and the answers are combined on the way back, so that the longest path grows with the logarithm of
 * their number (Carns et al., Using Server-to-Server Communication in Parallel File Systems to Simplify
 * Consistency and Improve Performance, 2008). The daemon that begins one hands half of the others to each of two, which do
 * the same with theirs.
 *
 * The operations are messages: `dir` says which directory. */

#include "home/home.h"
#include "peer/peers.h"
#include "rpc/peer_rpc.h"
#include "shuntd.h"

/* How it went: the first -errno, else the highest of the results. `page` and `used`: the names of MESSAGE_LIST, all
 * up to `limit` (page.h), the counters of MESSAGE_STATUS, or how many names of MESSAGE_SHARE each home was sent. 0 or a fatal
 * -errno. */
struct collective_end {
    int result;
    const char *page;
    size_t used;
    uint64_t limit;
    bool lost; /* a daemon that was to answer is gone */
};
typedef int collective_done(struct shuntd *, void *context, const struct collective_end *);

/* 0 or a fatal -errno; `done` (or NULL) is called at the end, perhaps at once. `expected` (or NULL) is what
 * MESSAGE_LOADED tells each member: how many names it was sent. */
int collective_begin(struct shuntd *, const struct message *, const uint32_t *expected, collective_done *done, void *context);
/* What came from another daemon. */
int collective_receive(struct shuntd *, uint16_t member, const struct frame_item *);
int collective_answered(struct shuntd *, uint16_t member, const struct frame_item *);
/* A daemon is a member no more: its answers are not waited for. */
int collective_gone(struct shuntd *, uint16_t member);
/* Those that waited for a directory to rest go on. */
int collective_resume(struct shuntd *);
/* `each` with the members that have not answered one that was under way at *last; *last is the last one then. 0 or what `each`
 * answers. */
int collective_each_asked(struct shuntd *, uint64_t *last, rpc_each_member *each);
bool collective_is_under_way(const struct shuntd *);
void collective_free(struct shuntd *);

/* What each daemon does. COLLECTIVE_LATER: collective_resume comes back to it; COLLECTIVE_WORKS: collective_finish says how it
 * went. */
#define COLLECTIVE_LATER 1000
#define COLLECTIVE_WORKS 1001
struct collective;
typedef int collective_part(struct shuntd *, struct collective *, const struct message *);
struct collective_handlers {
    collective_part *part[MESSAGE_TYPES]; /* NULL: no collective */
    /* Adds the numbers of one page to those of another, of `used` bytes, which has room for PAGE_MAX; how many bytes it has
     * then. Pure. NULL: pages of that type are merged (MESSAGE_LIST), or there are none. */
    size_t (*add[MESSAGE_TYPES])(char *to, size_t used, const char *from, size_t size);
    /* It is told to members that are homes of nothing any more and wait for their end, too: what their processes see of a
     * directory, or their mirrors. Those that end before they have done it are `lost`. */
    bool concerns_nodes[MESSAGE_TYPES];
};

int collective_finish(struct shuntd *, struct collective *, int result);
/* The members that one is about to reach if it is begun now, this one among them, by their numbers: how many. `to` has room for
 * SESSION_MEMBERS_MAX. */
size_t collective_members(const struct shuntd *, uint16_t *to);
/* For the parts. */
uint32_t collective_expected(const struct collective *);
bool collective_is_mine(const struct collective *);    /* it was begun here */
bool collective_has_waited(const struct collective *); /* COLLECTIVE_LATER once */
void collective_wait(struct collective *, struct home_dir *);
void collective_wait_on(struct collective *, struct link *list);
/* Of MESSAGE_LIST: how large a page is to be. */
size_t collective_room(const struct collective *);
/* Of MESSAGE_LIST: a page of this daemon's names. Of MESSAGE_STATUS, MESSAGE_SHARE: its numbers. 0 or -ENOMEM. */
int collective_page(struct shuntd *, struct collective *, const char *page, size_t used, uint64_t limit);
