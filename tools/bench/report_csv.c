/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/report.h"

#include <inttypes.h>
#include <stdio.h>

/* CSV (RFC 4180 but for the line ends): numbers and words without commas only. */

static void report_csv_print_line(const struct plan *plan, unsigned configuration, size_t size, unsigned operation,
                                  uint64_t repetition, const struct sample *sample)
{
    printf("%" PRIu64 ",%s,%" PRIu64 ",%s,%s,%" PRIu64 ",%.9f,%.3f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
           repetition + 1, plan_configurations[configuration], plan->sizes[size], plan_operations[operation],
           plan_has(plan->neighbour, operation) ? "neighbour" : "own", sample->done, sample->seconds, results_rate(sample),
           sample->p50, sample->p90, sample->p99, sample->highest);
}

void report_csv(const struct report *report)
{
    const struct plan *plan = report->results->plan;
    puts("repetition,configuration,size,operation,files,operations,seconds,rate,p50_ns,p90_ns,p99_ns,highest_"
         "ns");
    for (uint64_t repetition = 0; repetition < plan->repetitions; repetition++)
        for (size_t size = 0; size < plan->size_count; size++)
            for (unsigned c = 0; c < PLAN_CONFIGURATIONS; c++)
                for (unsigned operation = 0; operation < PLAN_OPERATIONS; operation++) {
                    const struct series *series = &report->results->series[c][size][operation];
                    if (repetition < series->count)
                        report_csv_print_line(plan, c, size, operation, repetition, &series->samples[repetition]);
                }
}
