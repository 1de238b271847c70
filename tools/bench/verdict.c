/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/verdict.h"

#include <stdio.h>
#include <string.h>

/* Less than this is noise on any machine. */
#define NOTHING 0.05

/* What one repetition shows the other way round is noise, too. */
static bool verdict_is_more(const struct spread *ratio)
{
    return ratio->median > 1 + NOTHING && ratio->lowest >= 1;
}

static bool verdict_is_less(const struct spread *ratio)
{
    return ratio->median < 1 - NOTHING && ratio->highest <= 1;
}

static const char *verdict_cost_words(const struct spread *costs, char to[80])
{
    if (verdict_is_more(costs))
        snprintf(to, 80, "a shared directory costs %.1fx here", costs->median);
    else
        snprintf(to, 80, "a shared directory costs nothing beyond the noise here (%.2fx)", costs->median);
    return to;
}

/* Export adds to what shunt takes, so it is told only of a gain. "back" only where there was something to
 * give back. */
static const char *verdict_gain_words(const struct verdict *verdict, char to[96])
{
    const char *back = verdict_is_more(&verdict->costs) ? " back" : "";
    double gain = verdict->gives.median;
    if (verdict_is_more(&verdict->gives))
        snprintf(to, 96, "shunt would give %.1fx%s", gain, back);
    else if (verdict_is_less(&verdict->gives))
        snprintf(to, 96, "shunt would not help: it takes %.1f times as long", 1 / gain);
    else
        snprintf(to, 96, "shunt would change nothing beyond the noise (%.2fx)", gain);
    return to;
}

void verdict_words(const struct verdict *verdict, char *to, size_t size)
{
    char costs[80] = "", gives[96] = "", export[48] = "";
    bool has_costs = verdict->costs.median > 0, has_gives = verdict->gives.median > 0;
    if (has_costs)
        verdict_cost_words(&verdict->costs, costs);
    if (has_gives)
        verdict_gain_words(verdict, gives);
    if (verdict_is_more(&verdict->gives) && verdict->with_export > 0)
        snprintf(export, sizeof export, " (%.1fx with the export counted in)", verdict->with_export);
    if (has_costs || has_gives)
        snprintf(to, size, "%s: %s%s%s%s", verdict->operation, costs, has_costs && has_gives ? "; " : "", gives, export);
    else
        snprintf(to, size, "%s", "");
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
