/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What was measured, and what follows from it. Pure. */

#include "bench/plan.h"
#include "bench/histogram.h"
#include "bench/spread.h"

struct sample {
    uint64_t done;
    double seconds;
    uint64_t p50, p90, p99, highest; /* ns of one operation (readdir: one listing) */
};

/* Of one operation on files of one size in one configuration. */
struct series {
    uint64_t count; /* repetitions that have been measured */
    struct sample *samples;
    struct histogram latency; /* of all of them */
};

struct results {
    const struct plan *plan;
    struct series series[PLAN_CONFIGURATIONS][PLAN_SIZES_MAX][PLAN_OPERATIONS];
    double *scratch;
    double export_seconds; /* of all files of all processes, by the first; 0: not measured */
    uint64_t exported;
};

/* 0 or -ENOMEM. The structure is large: not for the stack. */
int results_init(struct results *, const struct plan *);
void results_finish(struct results *);
void results_add(struct results *, unsigned configuration, size_t size, unsigned operation, uint64_t done, double seconds,
                 const struct histogram *);

/* Operations a second. */
double results_rate(const struct sample *);
struct spread results_rates(struct results *, unsigned configuration, size_t size, unsigned operation);
/* How many times as fast one configuration is as another: each repetition's two are compared, which were
 * measured right after each other, then the comparisons' median is taken. All 0 if one of the two was not
 * measured. */
struct spread results_ratio(struct results *, unsigned one, unsigned other, size_t size, unsigned operation);
/* How many times as fast as natively creates under shunt are when their export is counted in; 0: not known.
 */
double results_gain_with_export(struct results *, size_t size);
