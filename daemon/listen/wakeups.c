/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "listen/wakeups.h"

#include <unistd.h>

#include "base/sys.h"

_Static_assert(CHANNEL_QPS <= UINT16_MAX + 1, "their numbers fit");

void wakeups_init(struct wakeups *wakeups, struct channel *channel)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *wakeups = (struct wakeups){.channel = channel, .cores = cores > 0 ? (unsigned)cores : 1};
}

static uint64_t wakeups_bit_of(uint32_t qp)
{
    return 1ull << qp % 64;
}

/* A client that is there already woke up by itself since, and sleeps again. */
void wakeups_add(struct wakeups *wakeups, uint32_t qp)
{
    uint64_t *word = &wakeups->is_there[qp / 64];
    if (*word & wakeups_bit_of(qp))
        return;
    *word |= wakeups_bit_of(qp);
    wakeups->qp[(wakeups->first + wakeups->count++) % CHANNEL_QPS] = (uint16_t)qp;
}

static unsigned wakeups_first_row(const struct wakeups *wakeups)
{
    return wakeups->qp[wakeups->first] / CHANNEL_ROW;
}

static uint32_t wakeups_take_first(struct wakeups *wakeups)
{
    const uint32_t qp = wakeups->qp[wakeups->first];
    wakeups->is_there[qp / 64] &= ~wakeups_bit_of(qp);
    wakeups->first = (wakeups->first + 1) % CHANNEL_QPS;
    wakeups->count--;
    return qp;
}

static void wakeups_wake_qps(struct wakeups *wakeups, unsigned row, uint32_t who)
{
    __atomic_add_fetch(&wakeups->channel->answers[row], 1, __ATOMIC_SEQ_CST);
    sys_futex_wake_bits(&wakeups->channel->answers[row], who);
}

/* Those that follow each other in a row are woken by one call: how many. */
static unsigned wakeups_wake_row(struct wakeups *wakeups, unsigned most)
{
    const unsigned row = wakeups_first_row(wakeups);
    uint32_t who = 0;
    unsigned woken = 0;
    for (; woken < most && wakeups->count > 0 && wakeups_first_row(wakeups) == row; woken++)
        who |= 1u << wakeups_take_first(wakeups) % CHANNEL_ROW;
    wakeups_wake_qps(wakeups, row, who);
    return woken;
}

static void wakeups_wake(struct wakeups *wakeups, unsigned most)
{
    while (most > 0 && wakeups->count > 0)
        most -= wakeups_wake_row(wakeups, most);
}

void wakeups_wake_next(struct wakeups *wakeups)
{
    wakeups_wake(wakeups, wakeups->cores);
    wakeups->woke = clock_monotonic();
}

void wakeups_wake_due(struct wakeups *wakeups)
{
    if (wakeups->count > 0 && clock_monotonic() >= wakeups->woke + WAKEUPS_PAUSE)
        wakeups_wake_next(wakeups);
}

void wakeups_wake_all(struct wakeups *wakeups)
{
    wakeups_wake(wakeups, CHANNEL_QPS);
}

void wakeups_wake_everybody(struct wakeups *wakeups)
{
    for (unsigned row = 0; row < CHANNEL_QPS / CHANNEL_ROW; row++)
        wakeups_wake_qps(wakeups, row, UINT32_MAX);
}
