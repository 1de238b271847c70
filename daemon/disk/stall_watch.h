/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What is under way in the file system, and a thread that says when it is held up there. A file system that loses a node may
 * hold up what needs something that the node held, for a minute, and nothing else (CephFS): heartbeats go on then, or are not
 * begun, where it is main's thread that waits. */

#include <stdint.h>

#include "base/list.h"

struct shuntd;
struct stall_watch;

/* One call, or several in a row; in its caller's memory from begin to end. */
struct stall_watch_call {
    struct link link;
    uint64_t began; /* monotonic */
};

/* `held_up` is called by a thread here, twice a second as long as a call lasts for longer than that. A daemon that stands
 * still, in whatever way, does not call it. 0 or -errno. */
int stall_watch_create(struct stall_watch **, struct shuntd *, void (*held_up)(struct shuntd *));
/* No call is under way any more. Takes NULL. */
void stall_watch_destroy(struct stall_watch *);

/* By any thread. Without a watch (NULL) they do nothing. */
void stall_watch_begin(struct stall_watch *, struct stall_watch_call *);
void stall_watch_end(struct stall_watch *, struct stall_watch_call *);

/* The value of an expression that goes to the file system: where main's thread does. */
#define STALL_WATCHED(watch, expression)                                                                                       \
    ({                                                                                                                         \
        struct stall_watch_call watched;                                                                                       \
        stall_watch_begin(watch, &watched);                                                                                    \
        const __auto_type value = (expression);                                                                                \
        stall_watch_end(watch, &watched);                                                                                      \
        value;                                                                                                                 \
    })
