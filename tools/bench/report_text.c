/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/report.h"

#include <inttypes.h>
#include <stdio.h>

#include "bench/verdict.h"

#define LABEL 10  /* of the first column: the operation */
#define TITLE 24  /* what stands above it may be longer */
#define COLUMN 30 /* of the others */

static void report_text_print_plural(uint64_t count, const char *what, const char *more)
{
    printf("%" PRIu64 " %s%s", count, what, count == 1 ? "" : more);
}

static void report_text_print_neighbour(const struct plan *plan)
{
    const char *between = "; of the neighbour's files: ";
    for (unsigned i = 0; i < PLAN_OPERATIONS; i++)
        if (plan_has(plan->operations & plan->neighbour, i)) {
            printf("%s%s", between, plan_operations[i]);
            between = ", ";
        }
}

static void report_text_print_head(const struct report *report)
{
    const struct plan *plan = report->results->plan;
    report_text_print_plural(plan->processes, "process", "es");
    printf(" on ");
    report_text_print_plural(report->conductor->nodes, plan->fakes ? "pretended node" : "node", "s");
    printf(" with ");
    report_text_print_plural(report->conductor->clients, "mount", "s");
    printf(" of the file system (%s); each ", report->site->kind);
    report_text_print_plural(plan->files, "file", "s");
    report_text_print_neighbour(plan);
    printf("\n");
    report_text_print_plural(plan->repetitions, "repetition", "s");
    printf(" by turns after %" PRIu64 " to warm up; medians (lowest..highest); readdir: names/s, and us of a whole listing\n",
           plan->warm_up);
}

/* The name of a column, above what is in it. */
static void report_text_print_column(const char *words, size_t *before)
{
    printf(" %*s", *before == 0 ? COLUMN - (TITLE - LABEL) : COLUMN, words);
    *before += 1;
}

static void report_text_print_configurations(const struct plan *plan, const char *title)
{
    size_t before = 0;
    printf("\n%-*s", TITLE, title);
    for (unsigned c = 0; c < PLAN_CONFIGURATIONS; c++)
        if (plan_has(plan->configurations, c))
            report_text_print_column(plan_configurations[c], &before);
    printf("\n");
}

static void report_text_print_pairs(const struct plan *plan, const char *title)
{
    char words[64];
    size_t before = 0;
    printf("\n%-*s", TITLE, title);
    for (size_t pair = 0; pair < REPORT_PAIRS; pair++)
        if (report_compares(plan, pair)) {
            snprintf(words, sizeof words, "%s/%s", plan_configurations[report_pairs[pair].one],
                     plan_configurations[report_pairs[pair].other]);
            report_text_print_column(words, &before);
        }
    printf("\n");
}

/* A line for each operation, with what `print` says of it. */
static void report_text_print_lines(const struct report *report, size_t size,
                                    void (*print)(const struct report *, size_t size, unsigned operation))
{
    for (unsigned operation = 0; operation < PLAN_OPERATIONS; operation++) {
        if (!plan_has(report->results->plan->operations, operation))
            continue;
        printf("%-*s", LABEL, plan_operations[operation]);
        print(report, size, operation);
        printf("\n");
    }
}

static void report_text_print_rates(const struct report *report, size_t size, unsigned operation)
{
    char words[64];
    for (unsigned c = 0; c < PLAN_CONFIGURATIONS; c++) {
        struct spread rate = results_rates(report->results, c, size, operation);
        snprintf(words, sizeof words, "%.0f (%.0f..%.0f)", rate.median, rate.lowest, rate.highest);
        if (plan_has(report->results->plan->configurations, c))
            printf(" %*s", COLUMN, words);
    }
}

static void report_text_print_ratios(const struct report *report, size_t size, unsigned operation)
{
    char words[64];
    for (size_t pair = 0; pair < REPORT_PAIRS; pair++) {
        struct spread ratio = results_ratio(report->results, report_pairs[pair].one, report_pairs[pair].other, size, operation);
        int digits = ratio.median < 0.1 ? 4 : 2;
        snprintf(words, sizeof words, "%.*f (%.*f..%.*f)", digits, ratio.median, digits, ratio.lowest, digits, ratio.highest);
        if (report_compares(report->results->plan, pair))
            printf(" %*s", COLUMN, words);
    }
}

static void report_text_print_latencies(const struct report *report, size_t size, unsigned operation)
{
    char words[64];
    for (unsigned c = 0; c < PLAN_CONFIGURATIONS; c++) {
        const struct histogram *latency = &report->results->series[c][size][operation].latency;
        snprintf(words, sizeof words, "%.1f %.1f %.1f %.0f", (double)histogram_at(latency, 0.5) / 1e3,
                 (double)histogram_at(latency, 0.9) / 1e3, (double)histogram_at(latency, 0.99) / 1e3,
                 (double)latency->highest / 1e3);
        if (plan_has(report->results->plan->configurations, c))
            printf(" %*s", COLUMN, words);
    }
}

static bool report_text_compares_any(const struct plan *plan)
{
    bool any = false;
    for (size_t pair = 0; pair < REPORT_PAIRS; pair++)
        any |= report_compares(plan, pair);
    return any;
}

static void report_text_print_size(const struct report *report, size_t size)
{
    const struct plan *plan = report->results->plan;
    printf("\nfiles of %" PRIu64 " bytes\n", plan->sizes[size]);
    report_text_print_configurations(plan, "operations/s");
    report_text_print_lines(report, size, report_text_print_rates);
    if (report_text_compares_any(plan)) {
        report_text_print_pairs(plan, "times as fast");
        report_text_print_lines(report, size, report_text_print_ratios);
    }
    report_text_print_configurations(plan, "us: p50 p90 p99 highest");
    report_text_print_lines(report, size, report_text_print_latencies);
}

static void report_text_print_export(const struct report *report)
{
    const struct results *results = report->results;
    if (results->exported > 0)
        printf("\nexport: %.1f us a file, of %" PRIu64 " files in %.3f s, by one process\n",
               1e6 * results->export_seconds / (double)results->exported, results->exported, results->export_seconds);
}

/* What one mount cannot tell. */
static void report_text_print_reservation(const struct report *report)
{
    if (report->conductor->clients == 1)
        printf("\nAll processes use one mount, so what several nodes of this file system cost each other was "
               "not "
               "measured.\n");
}

void report_text(const struct report *report)
{
    struct verdict verdict;
    char words[VERDICT_MAX];
    report_text_print_head(report);
    for (size_t size = 0; size < report->results->plan->size_count; size++)
        report_text_print_size(report, size);
    report_text_print_export(report);
    report_text_print_reservation(report);
    verdict_of(report->results, &verdict);
    verdict_words(&verdict, words, sizeof words);
    if (words[0])
        printf("\n%s\n", words);
}
