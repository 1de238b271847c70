/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/report.h"

#include "bench/verdict.h"
#include "cli/json.h"

static void report_json_write_spread(struct json *json, const char *key, struct spread spread)
{
    json_open(json, key, '{');
    json_real(json, "median", spread.median);
    json_real(json, "lowest", spread.lowest);
    json_real(json, "highest", spread.highest);
    json_close(json, '}');
}

static void report_json_write_set(struct json *json, const char *key, unsigned set, const char *const names[], unsigned count)
{
    json_open(json, key, '[');
    for (unsigned i = 0; i < count; i++)
        if (plan_has(set, i))
            json_text(json, NULL, names[i]);
    json_close(json, ']');
}

static void report_json_write_nodes(struct json *json, const struct conductor *conductor)
{
    json_open(json, "nodes", '[');
    for (uint32_t rank = 0; rank < conductor->count; rank++)
        if (conductor->peers[rank].leads)
            json_text(json, NULL, conductor->peers[rank].name);
    json_close(json, ']');
}

static void report_json_write_head(struct json *json, const struct report *report)
{
    const struct plan *plan = report->results->plan;
    json_text(json, "version", SHUNT_VERSION);
    json_text(json, "directory", report->conductor->directory);
    json_text(json, "file_system", report->site->kind);
    json_unsigned(json, "processes", plan->processes);
    report_json_write_nodes(json, report->conductor);
    json_bool(json, "pretended", plan->fakes > 0);
    json_unsigned(json, "mounts", report->conductor->clients);
    json_unsigned(json, "files", plan->files);
    json_unsigned(json, "repetitions", plan->repetitions);
    json_unsigned(json, "warm_up", plan->warm_up);
    json_text(json, "placement", plan->placement ? plan->placement : "auto");
    report_json_write_set(json, "neighbour", plan->operations & plan->neighbour, plan_operations, PLAN_OPERATIONS);
}

static void report_json_write_latency(struct json *json, const struct histogram *latency)
{
    json_open(json, "latency_ns", '{');
    json_unsigned(json, "p50", histogram_at(latency, 0.5));
    json_unsigned(json, "p90", histogram_at(latency, 0.9));
    json_unsigned(json, "p99", histogram_at(latency, 0.99));
    json_unsigned(json, "p999", histogram_at(latency, 0.999));
    json_unsigned(json, "highest", latency->highest);
    json_close(json, '}');
}

static void report_json_write_series(struct json *json, struct results *results, unsigned c, size_t size, unsigned operation)
{
    const struct series *series = &results->series[c][size][operation];
    json_open(json, NULL, '{');
    json_text(json, "configuration", plan_configurations[c]);
    json_unsigned(json, "size", results->plan->sizes[size]);
    json_text(json, "operation", plan_operations[operation]);
    json_text(json, "files", plan_has(results->plan->neighbour, operation) ? "neighbour" : "own");
    json_unsigned(json, "operations", series->samples[0].done);
    report_json_write_spread(json, "rate", results_rates(results, c, size, operation));
    json_open(json, "rates", '[');
    for (uint64_t i = 0; i < series->count; i++)
        json_real(json, NULL, results_rate(&series->samples[i]));
    json_close(json, ']');
    report_json_write_latency(json, &series->latency);
    json_close(json, '}');
}

static void report_json_write_all_series(struct json *json, struct results *results)
{
    json_open(json, "results", '[');
    for (size_t size = 0; size < results->plan->size_count; size++)
        for (unsigned c = 0; c < PLAN_CONFIGURATIONS; c++)
            for (unsigned operation = 0; operation < PLAN_OPERATIONS; operation++)
                if (results->series[c][size][operation].count > 0)
                    report_json_write_series(json, results, c, size, operation);
    json_close(json, ']');
}

static void report_json_write_ratio(struct json *json, struct results *results, size_t pair, size_t size, unsigned operation)
{
    json_open(json, NULL, '{');
    json_text(json, "of", plan_configurations[report_pairs[pair].one]);
    json_text(json, "to", plan_configurations[report_pairs[pair].other]);
    json_unsigned(json, "size", results->plan->sizes[size]);
    json_text(json, "operation", plan_operations[operation]);
    report_json_write_spread(json, "ratio",
                             results_ratio(results, report_pairs[pair].one, report_pairs[pair].other, size, operation));
    json_close(json, '}');
}

static void report_json_write_ratios(struct json *json, struct results *results)
{
    json_open(json, "ratios", '[');
    for (size_t size = 0; size < results->plan->size_count; size++)
        for (size_t pair = 0; pair < REPORT_PAIRS; pair++)
            for (unsigned operation = 0; operation < PLAN_OPERATIONS; operation++)
                if (report_compares(results->plan, pair) && plan_has(results->plan->operations, operation))
                    report_json_write_ratio(json, results, pair, size, operation);
    json_close(json, ']');
}

static void report_json_write_export(struct json *json, struct results *results)
{
    if (results->exported == 0)
        return;
    json_open(json, "export", '{');
    json_unsigned(json, "files", results->exported);
    json_real(json, "seconds", results->export_seconds);
    json_real(json, "create_ratio_with_export", results_gain_with_export(results, 0));
    json_close(json, '}');
}

void report_json(const struct report *report)
{
    struct json json = {0};
    struct verdict verdict;
    char words[VERDICT_MAX];
    verdict_of(report->results, &verdict);
    verdict_words(&verdict, words, sizeof words);
    json_open(&json, NULL, '{');
    report_json_write_head(&json, report);
    report_json_write_all_series(&json, report->results);
    report_json_write_ratios(&json, report->results);
    report_json_write_export(&json, report->results);
    json_text(&json, "verdict", words);
    json_close(&json, '}');
}
