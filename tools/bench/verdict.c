/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/verdict.h"

#include <stdio.h>
#include <string.h>

/* A median so near to 1, of repetitions that do not spread further than this, is noise on any machine. */
#define NOTHING 0.05
#define NOISE 1.25

enum finding { NO_CHANGE, MORE, LESS, NOT_CERTAIN };

/* What one repetition shows the other way round is not certain, nor is a median near to 1 of repetitions far apart. */
static enum finding verdict_finding(const struct spread *ratio)
{
    if (ratio->median > 1 + NOTHING)
        return ratio->lowest >= 1 ? MORE : NOT_CERTAIN;
    if (ratio->median < 1 - NOTHING)
        return ratio->highest <= 1 ? LESS : NOT_CERTAIN;
    return ratio->highest <= NOISE && ratio->lowest >= 1 / NOISE ? NO_CHANGE : NOT_CERTAIN;
}

/* Empty after one repetition, which has no interval. */
static const char *verdict_interval(double from, double to, char words[32])
{
    words[0] = '\0';
    if (from < to)
        snprintf(words, 32, " (%.2f..%.2f)", from, to);
    return words;
}

static void verdict_cost_words(const struct spread *costs, char to[VERDICT_PART])
{
    char interval[32];
    verdict_interval(costs->lowest, costs->highest, interval);
    if (verdict_finding(costs) == NO_CHANGE)
        snprintf(to, VERDICT_PART, "a shared directory costs nothing beyond the noise here: %.2fx%s", costs->median, interval);
    else
        snprintf(to, VERDICT_PART, "a shared directory costs %.2fx%s here", costs->median, interval);
}

/* "back" only where there was something to give back. */
static void verdict_gain_words(const struct verdict *verdict, char to[VERDICT_PART])
{
    const struct spread *gives = &verdict->gives;
    const char *back = verdict_finding(&verdict->costs) == MORE && verdict_finding(gives) == MORE ? " back" : "";
    char interval[32];
    switch (verdict_finding(gives)) {
    case NO_CHANGE:
        verdict_interval(gives->lowest, gives->highest, interval);
        snprintf(to, VERDICT_PART, "shunt would change nothing beyond the noise: %.2fx%s", gives->median, interval);
        break;
    case LESS:
        verdict_interval(1 / gives->highest, 1 / gives->lowest, interval);
        snprintf(to, VERDICT_PART, "shunt would not help: it takes %.2f times%s as long", 1 / gives->median, interval);
        break;
    default:
        verdict_interval(gives->lowest, gives->highest, interval);
        snprintf(to, VERDICT_PART, "shunt would give %.2fx%s%s", gives->median, interval, back);
    }
}

/* Export adds to what shunt takes, so it is told only of a gain. */
void verdict_words(const struct verdict *verdict, char *to, size_t size)
{
    char costs[VERDICT_PART] = "", gives[VERDICT_PART] = "", export[48] = "";
    bool has_costs = verdict->costs.median > 0, has_gives = verdict->gives.median > 0;
    bool is_certain = true;
    *to = '\0';
    if (has_costs) {
        verdict_cost_words(&verdict->costs, costs);
        is_certain = verdict_finding(&verdict->costs) != NOT_CERTAIN;
    }
    if (has_gives) {
        verdict_gain_words(verdict, gives);
        is_certain &= verdict_finding(&verdict->gives) != NOT_CERTAIN;
    }
    if (has_gives && verdict_finding(&verdict->gives) == MORE && verdict->with_export > 0)
        snprintf(export, sizeof export, " (%.2fx with the export counted in)", verdict->with_export);
    if (has_costs || has_gives)
        snprintf(to, size, "%s: %s%s%s%s%s", verdict->operation, costs, has_costs && has_gives ? "; " : "", gives, export,
                 is_certain ? "" : "; not certain: repeat with -r");
}

void verdict_of(struct results *results, struct verdict *verdict)
{
    unsigned operation = 0;
    while (!plan_has(results->plan->operations, operation))
        operation++;
    *verdict = (struct verdict){
        .operation = plan_operations[operation],
        .costs = results_ratio(results, PLAN_PRIVATE, PLAN_SHARED, 0, operation),
        .gives = results_ratio(results, PLAN_SHUNT, PLAN_SHARED, 0, operation),
        .with_export = operation == PLAN_CREATE ? results_gain_with_export(results, 0) : 0,
    };
}
