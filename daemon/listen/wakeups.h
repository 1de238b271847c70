/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The clients that were answered while they slept: who is woken, and when.
 *
 * To wake one takes the daemon longer than to answer him, and he often comes back to sleep: where more ask than there are
 * cores, each is woken for each answer, if all are woken at once; what they ask then keeps the daemon so busy that whoever
 * looks for his answer looks in vain, and sleeps, too. So as many are woken at a time as there are cores, in the order in
 * which they were answered: he who runs is answered without a wake for as long as the scheduler lets him, as he would be if
 * he were alone. The next ones are woken as soon as nobody asks, or after SLEEPERS_PAUSE. tests/bench/CREATE.md has the
 * figures.
 *
 * The pause: while all other cores are taken, the kernel puts who is woken on the daemon's own. There he asks once and sleeps
 * again; two such wakes with their switches take the daemon 8 us, and are to be a small part of its time.
 *
 * Of the thread whose turn it is to serve. */

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "request/channel.h"

#define SLEEPERS_PAUSE (CLOCK_MILLISECOND / 5)

struct sleepers {
    struct road *road;
    unsigned cores, first, count;
    uint64_t woke; /* the last ones, clock_monotonic */
    uint64_t is_there[ROAD_LANES / 64];
    uint16_t lane[ROAD_LANES]; /* a ring */
};

void sleepers_init(struct sleepers *, struct road *);
void sleepers_add(struct sleepers *, uint32_t lane);
static inline bool sleepers_are_none(const struct sleepers *sleepers)
{
    return sleepers->count == 0;
}

/* As many as there are cores. */
void sleepers_wake_next(struct sleepers *);
/* Likewise, but not so soon after the last ones. */
void sleepers_wake_due(struct sleepers *);
void sleepers_wake_all(struct sleepers *);
/* Whoever sleeps, answered or not. */
void sleepers_wake_everybody(struct sleepers *);
