/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/run.h"

#include <stdio.h>

#include "base/clock.h"
#include "cli/progress.h"
#include "leaving/export.h"

struct run {
    struct conductor *conductor;
    const struct plan *plan;
    struct results *results;
    struct progress progress;
    uint32_t pass;        /* the next one's number */
    uint64_t done, total; /* passes, warm-up included */
};

/* One pass: all operations of one configuration with files of one size. */
struct pass {
    unsigned configuration;
    size_t size;
    bool measured;
    struct talk_order order;
};

static enum talk_kind run_kind_of(unsigned configuration)
{
    return plan_is_shunt(configuration) ? TALK_SHIMMED : TALK_NATIVE;
}

static int run_ask(struct run *run, struct pass *pass, enum talk_what what, enum conductor_who who, struct conducted *conducted)
{
    pass->order.what = what;
    return conductor_ask(run->conductor, run_kind_of(pass->configuration), who, &pass->order, conducted);
}

static void run_show(struct run *run, const struct pass *pass, unsigned operation)
{
    if (progress_due(&run->progress))
        progress_line(&run->progress, "%s, %s (%s%llu %%)", plan_configurations[pass->configuration],
                      plan_operations[operation], pass->measured ? "" : "warm-up, ",
                      (unsigned long long)(100 * run->done / run->total));
}

static int run_work(struct run *run, struct pass *pass, unsigned operation)
{
    static struct conducted conducted;
    run_show(run, pass, operation);
    pass->order.operation = operation;
    if (run_ask(run, pass, TALK_WORK, CONDUCTOR_ALL, &conducted) < 0)
        return -1;
    pass->order.renamed |= operation == PLAN_RENAME;
    if (pass->measured && plan_has(run->plan->operations, operation))
        results_add(run->results, pass->configuration, pass->size, operation, conducted.done, conducted.seconds,
                    &conducted.latency);
    return 0;
}

static int run_make_directories(struct run *run, struct pass *pass)
{
    pass->order.pass = run->pass++;
    if (run_ask(run, pass, TALK_MAKE, CONDUCTOR_FIRST, NULL) < 0)
        return -1;
    return plan_is_private(pass->configuration) ? run_ask(run, pass, TALK_MAKE_OWN, CONDUCTOR_ALL, NULL) : 0;
}

static int run_remove_directories(struct run *run, struct pass *pass)
{
    if (plan_is_private(pass->configuration) && run_ask(run, pass, TALK_REMOVE_OWN, CONDUCTOR_ALL, NULL) < 0)
        return -1;
    return run_ask(run, pass, TALK_REMOVE, CONDUCTOR_FIRST, NULL);
}

static struct pass run_begin_pass(const struct run *run, unsigned configuration, size_t size, bool measured)
{
    return (struct pass){configuration,
                         size,
                         measured,
                         {.configuration = configuration, .files = run->plan->files, .size = run->plan->sizes[size]}};
}

/* Files are made and removed whether that is measured or not; always in new directories, since what file
 * systems and shunt know of a directory outlives its files. */
static int run_do_pass(struct run *run, unsigned configuration, size_t size, bool measured)
{
    struct pass pass = run_begin_pass(run, configuration, size, measured);
    const unsigned wanted = run->plan->operations | 1u << PLAN_CREATE | 1u << PLAN_UNLINK;
    if (run_make_directories(run, &pass) < 0)
        return -1;
    for (unsigned operation = 0; operation < PLAN_OPERATIONS; operation++)
        if (plan_has(wanted, operation) && run_work(run, &pass, operation) < 0)
            return -1;
    run->done++;
    return run_remove_directories(run, &pass);
}

static int run_repeat(struct run *run)
{
    const struct plan *plan = run->plan;
    for (uint64_t repetition = 0; repetition < plan->warm_up + plan->repetitions; repetition++)
        for (size_t size = 0; size < plan->size_count; size++)
            for (size_t turn = 0; turn < plan_turns(plan); turn++)
                if (run_do_pass(run, plan_turn(plan, repetition, turn), size, repetition >= plan->warm_up) < 0)
                    return -1;
    return 0;
}

/* Leaving shunt has a price, too: files of the first size are made once more, and stay. */
static bool run_wants_export(const struct plan *plan)
{
    return plan_has(plan->configurations, PLAN_SHUNT) && plan_has(plan->operations, PLAN_CREATE);
}

static int run_prepare_export(struct run *run)
{
    struct pass pass = run_begin_pass(run, PLAN_SHUNT, 0, false);
    return run_make_directories(run, &pass) < 0 ? -1 : run_work(run, &pass, PLAN_CREATE);
}

static int run_measure_export(struct run *run, const struct site *site)
{
    const struct export_options options = {.quiet = true};
    char root[PATH_MAX + sizeof SITE_ROOT];
    snprintf(root, sizeof root, "%s/" SITE_ROOT, site->top);
    uint64_t began = clock_monotonic();
    if (export_root(root, &options) != STATUS_OK)
        return -1;
    run->results->export_seconds = (double)(clock_monotonic() - began) / 1e9;
    run->results->exported = run->plan->files * run->plan->processes;
    return 0;
}

int run_all(struct conductor *conductor, const struct site *site, struct results *results)
{
    const struct plan *plan = conductor->plan;
    struct run run = {.conductor = conductor, .plan = plan, .results = results};
    run.total = (plan->warm_up + plan->repetitions) * plan->size_count * plan_turns(plan);
    progress_init(&run.progress, false);
    int error = conductor_prepare(conductor, site);
    if (error == 0)
        error = run_repeat(&run);
    if (error == 0 && run_wants_export(plan))
        error = run_prepare_export(&run);
    progress_finish(&run.progress);
    if (conductor_end(conductor) < 0)
        error = -1;
    return error == 0 && run_wants_export(plan) ? run_measure_export(&run, site) : error;
}
