/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "listen/wakeups.h"

#include <unistd.h>

#include "base/sys.h"

_Static_assert(ROAD_LANES <= UINT16_MAX + 1, "their numbers fit");

void sleepers_init(struct sleepers *sleepers, struct road *road)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *sleepers = (struct sleepers){.road = road, .cores = cores > 0 ? (unsigned)cores : 1};
}

static uint64_t bit_of(uint32_t lane)
{
    return 1ull << lane % 64;
}

/* Who is there already woke up by himself since, and sleeps again. */
void sleepers_add(struct sleepers *sleepers, uint32_t lane)
{
    uint64_t *word = &sleepers->is_there[lane / 64];
    if (*word & bit_of(lane))
        return;
    *word |= bit_of(lane);
    sleepers->lane[(sleepers->first + sleepers->count++) % ROAD_LANES] = (uint16_t)lane;
}

static unsigned first_row(const struct sleepers *sleepers)
{
    return sleepers->lane[sleepers->first] / ROAD_ROW;
}

static uint32_t take_first(struct sleepers *sleepers)
{
    const uint32_t lane = sleepers->lane[sleepers->first];
    sleepers->is_there[lane / 64] &= ~bit_of(lane);
    sleepers->first = (sleepers->first + 1) % ROAD_LANES;
    sleepers->count--;
    return lane;
}

static void wake_lanes(struct sleepers *sleepers, unsigned row, uint32_t who)
{
    __atomic_add_fetch(&sleepers->road->answers[row], 1, __ATOMIC_SEQ_CST);
    sys_futex_wake_bits(&sleepers->road->answers[row], who);
}

/* Those that follow each other in a row are woken by one call: how many. */
static unsigned wake_row(struct sleepers *sleepers, unsigned most)
{
    const unsigned row = first_row(sleepers);
    uint32_t who = 0;
    unsigned woken = 0;
    for (; woken < most && sleepers->count > 0 && first_row(sleepers) == row; woken++)
        who |= 1u << take_first(sleepers) % ROAD_ROW;
    wake_lanes(sleepers, row, who);
    return woken;
}

static void wake(struct sleepers *sleepers, unsigned most)
{
    while (most > 0 && sleepers->count > 0)
        most -= wake_row(sleepers, most);
}

void sleepers_wake_next(struct sleepers *sleepers)
{
    wake(sleepers, sleepers->cores);
    sleepers->woke = clock_monotonic();
}

void sleepers_wake_due(struct sleepers *sleepers)
{
    if (sleepers->count > 0 && clock_monotonic() >= sleepers->woke + SLEEPERS_PAUSE)
        sleepers_wake_next(sleepers);
}

void sleepers_wake_all(struct sleepers *sleepers)
{
    wake(sleepers, ROAD_LANES);
}

void sleepers_wake_everybody(struct sleepers *sleepers)
{
    for (unsigned row = 0; row < ROAD_LANES / ROAD_ROW; row++)
        wake_lanes(sleepers, row, UINT32_MAX);
}
