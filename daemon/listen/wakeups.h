/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The clients that were answered while they slept: which of them are woken, and when.
 *
 * Waking one takes the daemon longer than answering it, and it often goes back to sleep: where more ask than there are
 * cores, each is woken for each answer, if all are woken at once; what they ask then keeps the daemon so busy that a client
 * that spins for its answer does not see it, and sleeps, too. So as many are woken at a time as there are cores, in the order
 * in which they were answered: a client that runs is answered without a wakeup for as long as the scheduler lets it, as if it
 * were alone. The next ones are woken as soon as nobody asks, or after WAKEUPS_PAUSE. docs/performance.md has the figures.
 *
 * The pause: while all other cores are taken, the kernel puts a woken client on the daemon's own. There it asks once and sleeps
 * again; two such wakes with their switches take the daemon 8 us, and are to be a small part of its time.
 *
 * Of the thread whose turn it is to serve. */

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "request/channel.h"

#define WAKEUPS_PAUSE (CLOCK_MILLISECOND / 5)

struct wakeups {
    struct channel *channel;
    unsigned cores, first, count;
    uint64_t woke; /* the last ones, clock_monotonic */
    uint64_t is_there[CHANNEL_QPS / 64];
    uint16_t qp[CHANNEL_QPS]; /* a ring */
};

void wakeups_init(struct wakeups *, struct channel *);
void wakeups_add(struct wakeups *, uint32_t qp);
static inline bool wakeups_are_none(const struct wakeups *wakeups)
{
    return wakeups->count == 0;
}

/* As many as there are cores. */
void wakeups_wake_next(struct wakeups *);
/* Likewise, but not so soon after the last ones. */
void wakeups_wake_due(struct wakeups *);
void wakeups_wake_all(struct wakeups *);
/* All that sleep, answered or not. */
void wakeups_wake_everybody(struct wakeups *);
