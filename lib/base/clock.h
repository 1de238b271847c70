/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Time in nanoseconds, as the kernel tells it to this process: by the vDSO, else by a system call, never by libc, whose clock a
 * preloaded library may have replaced (libfaketime). Async-signal-safe.
 *
 * A time namespace has CLOCK_MONOTONIC and CLOCK_BOOTTIME of its own. So they are compared within a process alone; across
 * processes request/lease_clock.h does that. Somebody may set CLOCK_REALTIME. */

#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#define CLOCK_SECOND 1000000000ull
#define CLOCK_MILLISECOND 1000000ull

uint64_t clock_of(clockid_t which);

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

/* A time that it has stamped one with. */
static inline uint64_t clock_stamp(struct statx_timestamp time)
{
    return (uint64_t)time.tv_sec * CLOCK_SECOND + time.tv_nsec;
}

/* UINT64_MAX: never. */
static inline uint64_t clock_after(uint64_t now, uint64_t delay)
{
    return delay < UINT64_MAX - now ? now + delay : UINT64_MAX;
}

/* Until then or a signal. */
void clock_sleep(const struct timespec *);

static inline struct timespec clock_split(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / CLOCK_SECOND), .tv_nsec = (long)(ns % CLOCK_SECOND)};
}
