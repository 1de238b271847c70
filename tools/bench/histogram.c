/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/histogram.h"

#include <stddef.h>

/* Powers of two above the fine ones are cut into as many buckets as there are numbers below 32. */
static size_t histogram_bucket_of(uint64_t ns)
{
    if (ns < HISTOGRAM_FINE)
        return ns;
    unsigned power = 63u - (unsigned)__builtin_clzll(ns);
    if (power >= HISTOGRAM_HIGHEST_POWER)
        return HISTOGRAM_BUCKETS - 1;
    return (power - 4) * HISTOGRAM_FINE + (ns >> (power - 5)) % HISTOGRAM_FINE;
}

/* The middle of it. */
static uint64_t histogram_value_of(size_t bucket)
{
    if (bucket < 2 * HISTOGRAM_FINE)
        return bucket;
    size_t shift = bucket / HISTOGRAM_FINE - 1;
    uint64_t first = (uint64_t)(HISTOGRAM_FINE + bucket % HISTOGRAM_FINE) << shift;
    return first + (1ull << shift) / 2;
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
    histogram->count++;
    histogram->buckets[histogram_bucket_of(ns)]++;
    if (ns > histogram->highest)
        histogram->highest = ns;
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
    to->count += from->count;
    if (from->highest > to->highest)
        to->highest = from->highest;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        to->buckets[i] += from->buckets[i];
}

uint64_t histogram_at(const struct histogram *histogram, double share)
{
    double wanted = share * (double)histogram->count;
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= wanted)
            return histogram_value_of(i) < histogram->highest ? histogram_value_of(i) : histogram->highest;
    }
    return 0;
}
