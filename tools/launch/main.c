/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
/* shunt-launch: runs a parallel program with a daemon on each of its nodes. This file is the table of
 * contents: the command line and the run. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/program_signals.h"
#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/stopping.h"
#include "config/config.h"
#include "launch/agent.h"
#include "launch/agents_rest.h"
#include "launch/job.h"
#include "launch/plan.h"
#include "launch/plugin_step.h"
#include "launch/proof.h"
#include "leaving/leave.h"
#include "programs/launch.h"
#include "programs/site.h"
#include "serving/daemon.h"
#include "serving/takeover.h"
#include "tree/orphans.h"

enum { FAKE_NODES = COMMAND_LONG + 1, HOSTS, TAKEOVER, JSON, DRY_RUN, EXPORT };

static const struct choice choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again (default: SHUNT_ROOT)"},
    {EXPORT, "export", LEAVE_WORDS, "when to make roots plain directories again (default: now)"},
    {'k', "keep", NULL, "as --export never"},
    {'p', "placement", "auto|branch", "redirect files when it pays, or always (default: auto)"},
    {'f', "leaf-full", "N", "files in one leaf directory (default: by file system)"},
    {FAKE_NODES, "fake-nodes", "N", "N pretended nodes on this machine"},
    {HOSTS, "hosts", "FILE", "the nodes, one a line (default: those of the allocation)"},
    {TAKEOVER, "takeover", NULL, "take over from hosts that are silent, without asking the batch system"},
    {JSON, "json", NULL, "say at the end as a JSON object what was done"},
    {DRY_RUN, "dry-run", NULL, "run nothing, print what would be run"},
    {'V', "version", NULL, "print the version"},
    {0},
};

static int main_launch(const struct command *, int argc, char **argv);

static const struct command commands[] = {
    {"shunt-launch", "[OPTION]... [--] LAUNCHER... PROGRAM...",
     "Start a daemon on each node of the job, run it under shunt, stop them, and export.", choices,
     COMMAND_COMMAND | COMMAND_ALONE, main_launch},
    {AGENT, "", "Keep the daemons of one node.", agent_choices, COMMAND_HIDDEN | COMMAND_ALONE, agent},
    {PROOF_COMMAND, "-- COMMAND...", "Prove that the shim is in place, then run a command.", proof_choices,
     COMMAND_COMMAND | COMMAND_HIDDEN | COMMAND_ALONE, proof_run},
    {STEP_BEGIN, "", "Begin a step of Slurm.", plugin_step_choices, COMMAND_HIDDEN | COMMAND_ALONE, plugin_step_begin},
    {STEP_KEEP, "", "Keep one node of a step.", plugin_step_keep_choices, COMMAND_HIDDEN | COMMAND_ALONE, plugin_step_keep},
    {STEP_END, "", "End a step.", plugin_step_choices, COMMAND_HIDDEN | COMMAND_ALONE, plugin_step_end},
    {0},
};

static int main_take_number(const struct command *command, struct launch *launch, const char *text)
{
    if (config_number_parse(text, NODES_MAX, &launch->fakes) == 0)
        return 0;
    error_usage(command, "--fake-nodes '%s': not a number from 1 to %d", text, NODES_MAX);
    return -1;
}

static int main_take_option(const struct command *command, struct launch *launch, int option)
{
    switch (option) {
    case 'r':
        return roots_add(&launch->roots, optarg);
    case 'p':
        return daemon_take_placement(command, optarg, &launch->placement);
    case 'f':
        return daemon_take_leaf_full(command, optarg, &launch->leaf_full);
    case FAKE_NODES:
        return main_take_number(command, launch, optarg);
    case HOSTS:
        launch->hosts = optarg;
        return 0;
    case JSON:
        launch->json = true;
        return 0;
    case TAKEOVER:
        launch->takeover = true;
        return 0;
    case DRY_RUN:
        launch->dry_run = true;
        return 0;
    case 'V':
        puts("shunt-launch " SHUNT_VERSION);
        return COMMAND_HELPED;
    case EXPORT:
        return leave_take(command, optarg, &launch->leave, &launch->quiet);
    default:
        launch->leave = LEAVE_NEVER;
        launch->quiet = 0;
        return 0;
    }
}

/* The run. */

static int main_leave(struct launch *launch, const struct owners *owners)
{
    const uint64_t began = clock_monotonic();
    int status = STATUS_OK;
    for (size_t i = 0; i < launch->roots.count; i++) {
        int answer = leave_root(launch->roots.paths[i], launch->leave, owners, &launch->exported);
        if (answer != STATUS_OK)
            status = answer;
    }
    launch->export_ms = (clock_monotonic() - began) / CLOCK_MILLISECOND;
    return status;
}

static double main_seconds(uint64_t ms)
{
    return (double)ms / 1000;
}

static void main_tell_exported(const struct export_sum *sum, double seconds, char *to, size_t size)
{
    char rate[32] = "", requests[64] = "", owners[64] = "";
    if (seconds >= 1)
        snprintf(rate, sizeof rate, " (%.0f files/s)", (double)sum->files / seconds);
    if (sum->has_requests && sum->files > 0)
        snprintf(requests, sizeof requests, " by %" PRIu64 " requests of this host's NFS client", sum->requests);
    if (sum->by_owners > 0)
        snprintf(owners, sizeof owners, ", %zu of them by the nodes that made them", sum->by_owners);
    snprintf(to, size, "%zu file%s exported in %.1f s%s%s%s", sum->files, sum->files == 1 ? "" : "s", seconds, rate, requests,
             owners);
}

/* The last line: standard output is the job's. */
static void main_tell(const struct launch *launch, bool exported)
{
    const struct agent_counts *counts = &launch->agents.counts;
    const struct export_sum *sum = &launch->exported;
    const double seconds = main_seconds(launch->export_ms);
    char end[256] = "nothing exported", requests[32] = "null";
    if (sum->has_requests)
        snprintf(requests, sizeof requests, "%" PRIu64, sum->requests);
    if (launch->json) {
        fprintf(stderr,
                "{\"operations\": %" PRIu64 ", \"redirected\": %" PRIu64 ", \"waited_seconds\": %.3f, \"exported\": %s, "
                "\"exported_files\": %zu, \"exported_by_owners\": %zu, \"export_seconds\": %.3f, \"export_requests\": %s}\n",
                counts->operations, counts->redirected, main_seconds(counts->waited_ms), exported ? "true" : "false",
                sum->files, sum->by_owners, seconds, requests);
        return;
    }
    if (exported)
        main_tell_exported(sum, seconds, end, sizeof end);
    error_report("%" PRIu64 " operation%s, %" PRIu64 " file%s redirected, %.1f s waited for other processes, %s",
                 counts->operations, counts->operations == 1 ? "" : "s", counts->redirected, counts->redirected == 1 ? "" : "s",
                 main_seconds(counts->waited_ms), end);
}

static void main_complain_kept(const struct launch *launch)
{
    for (size_t i = 0; i < launch->roots.count; i++)
        error_report("%s: not exported (run 'shunt export %s' when no other session is to use it)", launch->roots.paths[i],
                     launch->roots.paths[i]);
}

static bool main_shares_disk(const struct launch *launch)
{
    for (size_t i = 0; i < launch->roots.count; i++)
        if (!owner_shares_disk(launch->roots.paths[i]))
            return false;
    return true;
}

static bool main_wants_owners(const struct launch *launch, const struct job_end *end)
{
    return launch->leave == LEAVE_NOW && end->signal == 0 && agents_rest_has_others(&launch->agents) &&
           main_shares_disk(launch);
}

/* The agents are resting. */
static int main_leave_by_owners(struct launch *launch)
{
    const struct owners owners = agents_rest_owners(&launch->agents);
    return main_leave(launch, &owners);
}

static int main_end_session(struct launch *launch, const struct job_end *end, struct signal_wait *watch)
{
    const bool by_owners = main_wants_owners(launch, end);
    int stopped = by_owners ? agents_rest_begin(&launch->agents, watch) : agents_stop(&launch->agents, watch);
    stopping_catch(); /* also one that came since, once it is not blocked */
    signal_wait_finish(watch);
    bool leaves = stopped == 0 && (launch->leave != LEAVE_NOW || (end->signal == 0 && !stopping()));
    int left = !leaves ? STATUS_OK : by_owners ? main_leave_by_owners(launch) : main_leave(launch, NULL);
    if (by_owners)
        agents_rest_end(&launch->agents);
    if (!leaves && launch->leave != LEAVE_NEVER)
        main_complain_kept(launch);
    int late = stopping_release();
    main_tell(launch,
              leaves && left == STATUS_OK && launch->leave == LEAVE_NOW && launch->exported.yielded < launch->roots.count);
    if (end->status)
        return end->status;
    if (end->signal || stopped > 0)
        return 128 + (end->signal ? end->signal : stopped);
    if (stopped < 0 || left)
        return stopped < 0 ? STATUS_FAILED : left;
    return late ? 128 + late : STATUS_OK;
}

/* What has been started is stopped again, and what was plain is plain again. */
static int main_give_up(struct launch *launch, int reason, struct signal_wait *watch)
{
    const int stopped = agents_stop(&launch->agents, watch);
    stopping_catch();
    signal_wait_finish(watch);
    if (stopped == 0 && launch->leave != LEAVE_NEVER)
        leave_undo(&launch->roots, launch->was_plain);
    else if (launch->leave != LEAVE_NEVER)
        main_complain_kept(launch);
    stopping_release();
    return reason > 0 ? 128 + reason : STATUS_FAILED;
}

/* Once, for all agents. */
static int main_settle(const struct launch *launch)
{
    int code = 0;
    stopping_catch();
    for (size_t i = 0; i < launch->roots.count && code == 0; i++)
        code = takeover_settle(launch->roots.paths[i], launch->takeover);
    const int signal = stopping_release();
    return signal > 0 ? 128 + signal : code < 0 ? STATUS_FAILED : STATUS_OK;
}

static int main_run(struct launch *launch)
{
    struct signal_wait watch;
    const struct job job = {launch->job.at, launch->line.kind == LINE_PLAIN ? launch->preload : NULL};
    error_outlast_reader();
    program_signals_outlast(); /* also before signals are waited for, and after that */
    const int settled = main_settle(launch);
    if (settled != STATUS_OK)
        return settled;
    for (size_t i = 0; i < launch->roots.count; i++)
        orphans_report(launch->roots.paths[i]);
    leave_note_plain(&launch->roots, launch->was_plain);
    if (signal_wait_init(&watch) < 0)
        return STATUS_FAILED;
    int error = agents_start(&launch->agents, &watch);
    if (error != 0)
        return main_give_up(launch, error, &watch);
    struct job_end end = job_run(&job, &launch->agents, &watch);
    if (!end.killed)
        return main_end_session(launch, &end, &watch);
    if (launch->leave != LEAVE_NEVER)
        main_complain_kept(launch);
    return 128 + end.signal; /* the agents stop by themselves: this process's end is their sign */
}

static int main_launch_all(struct launch *launch, char **words)
{
    if (roots_default(&launch->roots) < 0 || plan_line(launch, words) < 0)
        return STATUS_USAGE;
    if (site_is_off() && !launch->dry_run)
        return site_command(&launch->roots, words);
    if (site_check_variables() < 0)
        return STATUS_FAILED;
    if (plan_make(launch) < 0)
        return STATUS_FAILED;
    if (!launch->dry_run)
        return main_run(launch);
    plan_print(launch);
    return STATUS_OK;
}

static int main_launch(const struct command *command, int argc, char **argv)
{
    static struct launch launch;
    int option, wrong = 0;
    nodes_init(&launch.nodes);
    while (wrong == 0 && (option = command_option(command, argc, argv)) >= 0)
        wrong = main_take_option(command, &launch, option);
    int status = wrong == COMMAND_HELPED ? STATUS_OK : wrong ? STATUS_USAGE : command_status(option);
    if (wrong == 0 && option == COMMAND_END && optind == argc)
        status = error_usage(command, "no command is given");
    else if (wrong == 0 && option == COMMAND_END && launch.hosts != NULL && launch.fakes > 0)
        status = error_usage(command, "--hosts and --fake-nodes exclude each other");
    else if (wrong == 0 && option == COMMAND_END)
        status = main_launch_all(&launch, argv + optind);
    plan_finish(&launch);
    return status;
}

int main(int argc, char **argv)
{
    standard_streams_occupy();
    error_program = "shunt-launch";
    const struct command *hidden = argc > 1 ? command_find(commands, argv[1]) : NULL;
    const bool is_begun = hidden && hidden->flags & COMMAND_HIDDEN; /* on a node: there may be files of its own */
    if (site_read(!is_begun) < 0)
        return LAUNCH_NO_SHIM;
    if (is_begun) /* an agent's last words may have no reader any more */
        return hidden->run(hidden, argc - 1, argv + 1);
    int status = main_launch(&commands[0], argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    error_report("standard output: cannot be written: %s (check the disk or the program that it goes to)", strerror(errno));
    return status ? status : STATUS_FAILED;
}
