/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "request/lease_clock.h"

#include "base/sys.h"

static bool lease_clock_is_near(uint64_t difference, uint64_t now, uint64_t files)
{
    return difference != 0 && files - now - difference + LEASE_CLOCK_LAG <= 2 * LEASE_CLOCK_LAG;
}

bool lease_clock_is_known(const struct lease_clock *clock, uint64_t now, uint64_t files)
{
    return lease_clock_is_near(__atomic_load_n(&clock->difference, __ATOMIC_ACQUIRE), now, files);
}

bool lease_clock_has(const struct lease_clock *clock, uint64_t lease, uint64_t now, uint64_t files)
{
    const uint64_t difference = __atomic_load_n(&clock->difference, __ATOMIC_ACQUIRE);
    const uint64_t ahead = __atomic_load_n(&clock->ahead, __ATOMIC_ACQUIRE);
    return lease_clock_is_near(difference, now, files) && now + ahead + 2 * LEASE_CLOCK_LAG < lease &&
           __atomic_load_n(&clock->difference, __ATOMIC_RELAXED) == difference;
}

void lease_clock_learn(struct lease_clock *clock, uint64_t ahead, uint64_t now, uint64_t files)
{
    const uint64_t difference = files - now;
    __atomic_store_n(&clock->difference, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&clock->ahead, ahead, __ATOMIC_RELEASE);
    __atomic_store_n(&clock->difference, difference != 0 ? difference : 1, __ATOMIC_RELEASE);
}

uint64_t lease_clock_namespace(void)
{
    struct statx stat;
    return sys_statx(AT_FDCWD, "/proc/self/ns/time", 0, STATX_INO, &stat) == 0 ? stat.stx_ino : 0;
}
