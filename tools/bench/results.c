/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/results.h"

#include <errno.h>
#include <stdlib.h>

static struct series *results_series_at(struct results *results, size_t i)
{
    return &results->series[0][0][0] + i;
}

#define SERIES (PLAN_CONFIGURATIONS * PLAN_SIZES_MAX * PLAN_OPERATIONS)

int results_init(struct results *results, const struct plan *plan)
{
    *results = (struct results){.plan = plan, .scratch = calloc(plan->repetitions, sizeof(double))};
    bool full = !results->scratch;
    for (size_t i = 0; i < SERIES; i++) {
        results_series_at(results, i)->samples = calloc(plan->repetitions, sizeof(struct sample));
        full |= !results_series_at(results, i)->samples;
    }
    if (full)
        results_finish(results);
    return full ? -ENOMEM : 0;
}

void results_finish(struct results *results)
{
    for (size_t i = 0; i < SERIES; i++) {
        free(results_series_at(results, i)->samples);
        results_series_at(results, i)->samples = NULL;
    }
    free(results->scratch);
    results->scratch = NULL;
}

void results_add(struct results *results, unsigned configuration, size_t size, unsigned operation, uint64_t done,
                 double seconds, const struct histogram *latency)
{
    struct series *series = &results->series[configuration][size][operation];
    series->samples[series->count++] = (struct sample){
        .done = done,
        .seconds = seconds,
        .p50 = histogram_at(latency, 0.5),
        .p90 = histogram_at(latency, 0.9),
        .p99 = histogram_at(latency, 0.99),
        .highest = latency->highest,
    };
    histogram_merge(&series->latency, latency);
}

double results_rate(const struct sample *sample)
{
    return sample->seconds > 0 ? (double)sample->done / sample->seconds : 0;
}

struct spread results_rates(struct results *results, unsigned configuration, size_t size, unsigned operation)
{
    const struct series *series = &results->series[configuration][size][operation];
    for (uint64_t i = 0; i < series->count; i++)
        results->scratch[i] = results_rate(&series->samples[i]);
    return spread_of(results->scratch, series->count);
}

struct spread results_ratio(struct results *results, unsigned one, unsigned other, size_t size, unsigned operation)
{
    const struct series *a = &results->series[one][size][operation], *b = &results->series[other][size][operation];
    size_t pairs = 0;
    for (uint64_t i = 0; i < a->count && i < b->count; i++)
        if (results_rate(&b->samples[i]) > 0)
            results->scratch[pairs++] = results_rate(&a->samples[i]) / results_rate(&b->samples[i]);
    return spread_of(results->scratch, pairs);
}

double results_gain_with_export(struct results *results, size_t size)
{
    double shared = results_rates(results, PLAN_SHARED, size, PLAN_CREATE).median;
    double shunt = results_rates(results, PLAN_SHUNT, size, PLAN_CREATE).median;
    if (results->exported == 0 || shared <= 0 || shunt <= 0)
        return 0;
    return 1 / (1 / shunt + results->export_seconds / (double)results->exported) / shared;
}
