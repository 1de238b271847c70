/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What programs that do things at random, and say when, have in common. The numbers are those of SplitMix64. */

#include <stdint.h>
#include <time.h>

static inline uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static inline uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static inline unsigned draw(uint64_t *state, unsigned limit)
{
    *state += 0x9e3779b97f4a7c15;
    return (unsigned)(mix(*state) % limit);
}
