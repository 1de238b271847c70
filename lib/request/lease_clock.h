/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* How a process compares the time with its daemon's lease, which is a CLOCK_BOOTTIME of the daemon's. A process in another time
 * namespace has another such clock, which may be behind or ahead; how far, the kernel does not say. So the daemon is asked what
 * time it is: it is no later with the daemon than by that answer, reckoned from before the question.
 *
 * When is another namespace noticed? CLOCK_REALTIME is that of the machine in all of them, so where its difference to
 * CLOCK_BOOTTIME has changed the process is in another one, or somebody has set the time: the daemon is asked again.
 *
 * Async-signal-safe, and thread-safe: threads that learn at the same time learn the same. A forked child begins with zeros. */

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* The clock of files lags by a tick (10 ms at most), and a namespace of nearly the same time is not told from another: what
 * that may amount to is taken off a lease. */
#define LEASE_CLOCK_LAG (20 * CLOCK_MILLISECOND)

struct lease_clock {
    uint64_t difference; /* of CLOCK_REALTIME to this process's CLOCK_BOOTTIME when it was learnt; 0: it was not */
    uint64_t ahead;      /* the daemon's clock is that far ahead of this process's at most; modulo 2^64 */
};

/* Does the lease go on, at `now` by this process's CLOCK_BOOTTIME and `files` by clock_files, read after it? False, too, if the
 * clock is to be learnt first. */
bool lease_clock_has(const struct lease_clock *, uint64_t lease, uint64_t now, uint64_t files);
/* Is it to be learnt? */
bool lease_clock_is_known(const struct lease_clock *, uint64_t now, uint64_t files);
/* `ahead` holds at that time. */
void lease_clock_learn(struct lease_clock *, uint64_t ahead, uint64_t now, uint64_t files);
/* The inode number of this process's time namespace; 0 if it cannot be told, or the kernel has none. */
uint64_t lease_clock_namespace(void);
