/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* To sleep until another process has done its part, and to be woken, costs both of them more than the part where that
 * takes some microseconds: 20 to 50 us on an idle core. So a waiting side spins first, and sleeps then. Whether
 * that pays is learnt: each spin without success doubles how many waits go without one, and one that pays takes an eighth off,
 * so that there is one for each wait where nine of ten pay.
 *
 * What threads write there at the same time is a guess more or less. Async-signal-safe. */

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* ns: as long as it takes to be woken, so that spinning without success costs twice as much at most (Karlin et al., SOSP 1991)
 */
#define SPIN 50000
#define SPIN_REST 256 /* waits at most between two tries */

struct adaptive_spin {
    uint32_t rest, next; /* so many waits go without, and so many after the next spin without success */
};

static inline bool adaptive_spin_pays(struct adaptive_spin *spin)
{
    uint32_t rest = __atomic_load_n(&spin->rest, __ATOMIC_RELAXED);
    if (rest > 0)
        __atomic_store_n(&spin->rest, rest - 1, __ATOMIC_RELAXED);
    return rest == 0;
}

static inline void adaptive_spin_was(struct adaptive_spin *spin, bool in_vain)
{
    uint32_t next = __atomic_load_n(&spin->next, __ATOMIC_RELAXED);
    next = !in_vain ? next - next / 8 - (next > 0) : next < SPIN_REST / 2 ? 2 * next + 1 : SPIN_REST;
    __atomic_store_n(&spin->next, next, __ATOMIC_RELAXED);
    __atomic_store_n(&spin->rest, in_vain ? next : 0, __ATOMIC_RELAXED);
}

static inline void adaptive_spin_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#define SPIN_LOOKS 16 /* between two looks at the clock, which takes as long as one of them */

/* Spins until DONE: whether it is. If it is done at once no clock is read. */
#define SPIN_LOOK(DONE)                                                                                                        \
    ({                                                                                                                         \
        bool done_ = (DONE);                                                                                                   \
        for (uint64_t now_ = 0, end_ = UINT64_MAX; !done_ && now_ < end_;                                                      \
             now_ = clock_monotonic(), end_ = end_ == UINT64_MAX ? now_ + SPIN : end_)                                         \
            for (int i_ = 0; i_ < SPIN_LOOKS && !done_; i_++, done_ = (DONE))                                                  \
                adaptive_spin_pause();                                                                                         \
        done_;                                                                                                                 \
    })
