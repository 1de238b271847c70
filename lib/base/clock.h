/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Time in nanoseconds. clock_gettime is answered by the vDSO: no system call, async-signal-safe. */

#include <stdint.h>
#include <time.h>

#define CLOCK_SECOND 1000000000ull
#define CLOCK_MILLISECOND 1000000ull

static inline uint64_t clock_of(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return (uint64_t)now.tv_sec * CLOCK_SECOND + (uint64_t)now.tv_nsec;
}

/* For deadlines. */
static inline uint64_t clock_monotonic(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

/* For leases: it goes on while the machine is suspended. */
static inline uint64_t clock_boot(void)
{
    return clock_of(CLOCK_BOOTTIME);
}

/* The clock that file systems stamp inodes with (current_time() in the kernel reads the coarse one). */
static inline uint64_t clock_files(void)
{
    return clock_of(CLOCK_REALTIME_COARSE);
}

/* UINT64_MAX: never. */
static inline uint64_t clock_after(uint64_t now, uint64_t delay)
{
    return delay < UINT64_MAX - now ? now + delay : UINT64_MAX;
}

static inline struct timespec clock_split(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / CLOCK_SECOND), .tv_nsec = (long)(ns % CLOCK_SECOND)};
}
