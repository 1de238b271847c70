/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* How long single operations took: counts in buckets that are at most 1/32 wide, so that the latencies of
 * many processes can be added, and percentiles be told to 2 %. Pure. */

#include <stdint.h>

#define HISTOGRAM_FINE 32          /* buckets for each power of two */
#define HISTOGRAM_HIGHEST_POWER 41 /* 2^41 ns are 37 minutes: what takes longer counts as that */
#define HISTOGRAM_BUCKETS ((HISTOGRAM_HIGHEST_POWER - 4) * HISTOGRAM_FINE)

struct histogram {
    uint64_t count, highest; /* highest: exactly, in ns */
    uint32_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *, uint64_t ns);
void histogram_merge(struct histogram *, const struct histogram *);
/* So many ns at most did `share` of them take; 0 of nothing. */
uint64_t histogram_at(const struct histogram *, double share);
