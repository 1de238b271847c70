/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/agent.h"
#include "bench/conductor.h"
#include "bench/plot.h"
#include "bench/report.h"
#include "bench/run.h"
#include "cli/command.h"
#include "programs/launch.h"
#include "serving/daemon.h"
#include "commands.h"

static void command_bench_print_report(const struct report *report)
{
    switch (report->results->plan->format) {
    case PLAN_JSON:
        report_json(report);
        break;
    case PLAN_CSV:
        report_csv(report);
        break;
    default:
        report_text(report);
    }
}

/* Of an agent that was killed the daemon still serves, if it is on this host. */
static void command_bench_stop_left_daemons(const struct site *site)
{
    char root[PATH_MAX + sizeof SITE_ROOT];
    snprintf(root, sizeof root, "%s/" SITE_ROOT, site->top);
    if (site->top[0])
        daemon_stop(root, NULL);
}

/* What was begun is ended and removed, however it went. */
static int command_bench_conduct(const struct plan *plan, const char *directory, struct results *results)
{
    struct conductor conductor;
    struct site site = {0};
    int error = conductor_init(&conductor, plan, directory);
    if (error == 0)
        error = site_make(&site, directory);
    if (error == 0)
        error = run_all(&conductor, &site, results);
    if (conductor_end(&conductor) < 0)
        command_bench_stop_left_daemons(&site);
    if (site_remove(&site) < 0)
        error = -1;
    if (error == 0) {
        command_bench_print_report(&(struct report){results, &conductor, &site});
        error = plot_all(results);
    }
    int signal = conductor.signal;
    conductor_finish(&conductor);
    if (signal > 0)
        return 128 + signal;
    return error < 0 ? STATUS_FAILED : STATUS_OK;
}

static int command_bench_begin(const struct plan *plan, const char *directory)
{
    static struct results results;
    if (plan->rank.count > 1 && plan->rank.number > 0)
        return agent_join(plan, directory);
    if (plot_check(plan) < 0)
        return STATUS_FAILED;
    if (results_init(&results, plan) < 0) {
        error_report("--repetitions: not enough memory for so many repetitions (ask for fewer)");
        return STATUS_FAILED;
    }
    int status = command_bench_conduct(plan, directory, &results);
    results_finish(&results);
    return status;
}

/* The benchmark runs in a session of its own, where neither a terminal's signals nor the launcher that kills
 * its processes reach it: it cleans up when a signal is passed on to it, or when this process is gone. */

static void command_bench_run_apart(const struct plan *plan, const char *directory, struct signal_wait *watch, pid_t parent)
{
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal_wait_finish(watch);
    if (getppid() != parent)
        _exit(128 + SIGTERM);
    int status = command_bench_begin(plan, directory);
    if (fflush(stdout) < 0 && status == STATUS_OK) {
        error_report("standard output: cannot be written: %s (check the disk or the program that it goes to)", strerror(errno));
        status = STATUS_FAILED;
    }
    _exit(status);
}

/* A file system that hangs holds up the cleaning, too: a second signal need not wait for that. */
static int command_bench_wait_for(pid_t child, struct signal_wait *watch)
{
    int status = 0, before = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        int signal = signal_wait_next(watch, NULL, 0, -1);
        if (signal > 0 && before > 0) {
            error_report("process %d: still removing the files of the benchmark (wait for its end)", (int)child);
            return 128 + signal;
        }
        if (signal > 0)
            kill(child, before = signal);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int command_bench_guard(const struct plan *plan, const char *directory)
{
    struct signal_wait watch;
    pid_t own = getpid();
    if (signal_wait_init(&watch) < 0)
        return STATUS_FAILED;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        command_bench_run_apart(plan, directory, &watch, own);
    if (child < 0)
        error_report("cannot start a process: %s (end other processes and run this again)", strerror(errno));
    int status = child < 0 ? STATUS_FAILED : command_bench_wait_for(child, &watch);
    signal_wait_finish(&watch);
    return status;
}

int command_bench(const struct command *command, int argc, char **argv)
{
    char directory[PATH_MAX];
    struct plan plan;
    int end = plan_read(&plan, command, argc, argv);
    if (end != COMMAND_END)
        return command_status(end);
    if (launch_shim_is_loaded()) {
        error_report("bench: runs under shunt already, so nothing can be measured natively (run it without 'shunt exec' and "
                     "shunt-launch, it starts shunt itself)");
        return STATUS_USAGE;
    }
    return site_check(plan.directory, directory) < 0 ? STATUS_FAILED : command_bench_guard(&plan, directory);
}
