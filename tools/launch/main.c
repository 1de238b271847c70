/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
/* shunt-launch: runs a parallel program with a daemon on each of its nodes. This file is the table of
 * contents: the command line and the run. */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "daemon.h"
#include "export.h"
#include "launch/job.h"
#include "launch/agent.h"
#include "launch/plan.h"
#include "launch/proof.h"
#include "orphans.h"
#include "command.h"

enum { FAKE_NODES = VERB_LONG + 1, HOSTS, DRY_RUN, VERSION };

static const struct choice choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again (default: SHUNT_ROOT)"},
    {'k', "keep", NULL, "do not export: leave files where they are"},
    {'p', "placement", "auto|branch", "redirect files when it pays, or always (default: auto)"},
    {'f', "leaf-full", "N", "files in one leaf directory (default: by file system)"},
    {FAKE_NODES, "fake-nodes", "N", "N pretended nodes on this machine"},
    {HOSTS, "hosts", "FILE", "the nodes, one a line (default: those of the allocation)"},
    {DRY_RUN, "dry-run", NULL, "run nothing, print what would be run"},
    {'V', "version", NULL, "print the version"},
    {0},
};

static int launch(const struct verb *, int argc, char **argv);

const struct verb verbs[] = {
    {"shunt-launch", "[OPTION]... [--] LAUNCHER... PROGRAM...",
     "Start a daemon on each node of the job, run it under shunt, stop them, and export.", choices, VERB_COMMAND | VERB_ALONE,
     launch},
    {KEEPER, "", "Keep the daemons of one node.", keeper_choices, VERB_HIDDEN | VERB_ALONE, keeper},
    {PROOF_VERB, "-- COMMAND...", "Prove that the shim is in place, then run a command.", proof_choices,
     VERB_COMMAND | VERB_HIDDEN | VERB_ALONE, proof_run},
    {0},
};

static int take_number(const struct verb *verb, struct launch *launch, const char *text)
{
    if (config_number_parse(text, NODES_MAX, &launch->fakes) == 0)
        return 0;
    complain_usage(verb, "'%s' is no number of nodes from 1 to %d", text, NODES_MAX);
    return -1;
}

static int take_option(const struct verb *verb, struct launch *launch, int option)
{
    switch (option) {
    case 'r':
        return roots_add(&launch->roots, optarg);
    case 'p':
        return daemon_take_placement(verb, optarg, &launch->placement);
    case 'f':
        return daemon_take_leaf_full(verb, optarg, &launch->leaf_full);
    case FAKE_NODES:
        return take_number(verb, launch, optarg);
    case HOSTS:
        launch->hosts = optarg;
        return 0;
    case DRY_RUN:
        launch->dry_run = true;
        return 0;
    case 'V':
        puts("shunt-launch " SHUNT_VERSION);
        return VERB_HELPED;
    default:
        launch->keep = true;
        return 0;
    }
}

/* The run. */

static int leave(const struct launch *launch)
{
    const struct export_options options = {.quiet = true};
    int status = STATUS_OK;
    for (size_t i = 0; i < launch->roots.count; i++) {
        int answer = export_root(launch->roots.paths[i], &options);
        if (answer != STATUS_OK)
            status = answer;
    }
    return status;
}

static void complain_kept(const struct launch *launch)
{
    for (size_t i = 0; i < launch->roots.count; i++)
        complain("%s is left as it is: go on there with another session, or run `shunt export %s`", launch->roots.paths[i],
                 launch->roots.paths[i]);
}

static int end_session(struct launch *launch, const struct job_end *end, struct watch *watch)
{
    int stopped = crew_stop(&launch->crew, watch);
    bool leaves = stopped == 0 && end->signal == 0 && !launch->keep;
    watch_finish(watch);
    int left = leaves ? leave(launch) : STATUS_OK;
    if (!leaves && !launch->keep)
        complain_kept(launch);
    if (end->status)
        return end->status;
    if (end->signal || stopped > 0)
        return 128 + (end->signal ? end->signal : stopped);
    return stopped < 0 ? STATUS_FAILED : left;
}

/* What has been started is stopped again. */
static int give_up(struct launch *launch, int reason, struct watch *watch)
{
    crew_stop(&launch->crew, watch);
    watch_finish(watch);
    return reason > 0 ? 128 + reason : STATUS_FAILED;
}

static int run(struct launch *launch)
{
    struct watch watch;
    const struct job job = {launch->job.at, launch->line.kind == LINE_PLAIN ? launch->preload : NULL};
    for (size_t i = 0; i < launch->roots.count; i++)
        orphans_report(launch->roots.paths[i]);
    if (watch_init(&watch) < 0)
        return STATUS_FAILED;
    int error = crew_start(&launch->crew, &watch);
    if (error != 0)
        return give_up(launch, error, &watch);
    struct job_end end = job_run(&job, &launch->crew, &watch);
    if (end.killed) /* the keepers stop by themselves: this process's end is their sign */
        return 128 + end.signal;
    return end_session(launch, &end, &watch);
}

static int launch_all(struct launch *launch, char **words)
{
    if (roots_default(&launch->roots) < 0 || plan_line(launch, words) < 0)
        return STATUS_USAGE;
    if (plan_make(launch) < 0)
        return STATUS_FAILED;
    if (!launch->dry_run)
        return run(launch);
    plan_print(launch);
    return STATUS_OK;
}

static int launch(const struct verb *verb, int argc, char **argv)
{
    static struct launch launch;
    int option, wrong = 0;
    nodes_init(&launch.nodes);
    while (wrong == 0 && (option = verb_option(verb, argc, argv)) >= 0)
        wrong = take_option(verb, &launch, option);
    int status = wrong == VERB_HELPED ? STATUS_OK : wrong ? STATUS_USAGE : verb_status(option);
    if (wrong == 0 && option == VERB_END && optind == argc)
        status = complain_usage(verb, "give a command");
    else if (wrong == 0 && option == VERB_END && launch.hosts != NULL && launch.fakes > 0)
        status = complain_usage(verb, "--hosts and --fake-nodes exclude each other");
    else if (wrong == 0 && option == VERB_END)
        status = launch_all(&launch, argv + optind);
    plan_finish(&launch);
    return status;
}

int main(int argc, char **argv)
{
    complain_as = "shunt-launch";
    const struct verb *hidden = argc > 1 ? verb_find(argv[1]) : NULL;
    if (hidden && hidden->flags & VERB_HIDDEN) /* a keeper's last words may have no reader any more */
        return hidden->run(hidden, argc - 1, argv + 1);
    int status = launch(&verbs[0], argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    complain("standard output cannot be written: %s", strerror(errno));
    return status ? status : STATUS_FAILED;
}
