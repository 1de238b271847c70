/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/program_signals.h"
#include "base/sys.h"
#include "batch/scheduler.h"
#include "cli/command.h"
#include "cli/stopping.h"
#include "leaving/background.h"
#include "leaving/leave.h"
#include "programs/launch.h"
#include "programs/site.h"
#include "serving/daemon.h"
#include "serving/share.h"
#include "commands.h"

enum { RUN_EXPORT = COMMAND_LONG + 1 };

const struct choice command_run_choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again (default: SHUNT_ROOT)"},
    {'n', "node", "NAME", "what this node is called (default: SHUNT_NODE, or Slurm's or the host's name)"},
    {'p', "placement", "auto|branch", "redirect files when it pays, or always (default: auto)"},
    {'f', "leaf-full", "N", "files in one leaf directory (default: by file system)"},
    {RUN_EXPORT, "export", LEAVE_WORDS, "when to make roots plain directories again (default: now)"},
    {'k', "keep", NULL, "as --export never"},
    {0},
};

#define RUN_NOT -1 /* instead of the command's status */

struct run {
    struct roots roots;
    struct shares shares;
    struct daemon_options options;
    const char *node;
    enum leave leave;
    uint64_t quiet; /* of --export background, else 0 */
    struct background background;
    bool was_plain[ROOTS_MAX]; /* before it was started */
};

/* While the command runs: what a terminal sends it gets itself, what is sent to this process alone is passed
 * on. Signals for programs are that whenever they come, and are dropped while there is no command. */
static const struct {
    int number;
    bool forward;
} signals[] = {{SIGINT, false}, {SIGQUIT, false}, {SIGTERM, true}, {SIGHUP, true}};
#define SIGNALS (sizeof signals / sizeof *signals)

static volatile sig_atomic_t running_child;

static void command_run_forward(int number)
{
    if (running_child > 0)
        kill((pid_t)running_child, number);
}

static void command_run_take_signals(struct sigaction before[SIGNALS])
{
    for (size_t i = 0; i < SIGNALS; i++) {
        struct sigaction action = {.sa_handler = signals[i].forward ? command_run_forward : SIG_IGN, .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        sigaction(signals[i].number, &action, &before[i]);
        if (before[i].sa_handler == SIG_IGN)
            sigaction(signals[i].number, &before[i], NULL);
    }
}

static void command_run_give_signals_back(const struct sigaction before[SIGNALS])
{
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(signals[i].number, &before[i], NULL);
}

/* Until it has ended, with an eye on the daemons. */
static void command_run_watch(struct run *run, pid_t child)
{
    static struct pollfd watched[1 + ROOTS_MAX];
    watched[0] = (struct pollfd){.fd = (int)SYS2(SYS_pidfd_open, child, 0), .events = POLLIN};
    while (watched[0].fd >= 0) {
        const size_t count = shares_watch(&run->shares, watched + 1);
        if (poll(watched, 1 + count, -1) < 0 && errno == EINTR)
            continue;
        if (watched[0].revents != 0)
            break;
        if (shares_renew(&run->shares, watched + 1) != 0)
            error_report("node %s: a daemon has ended, and calls that need it fail with EIO (run 'shunt start')",
                         run->options.node);
    }
    if (watched[0].fd >= 0)
        close(watched[0].fd);
}

static int command_run_wait_for(struct run *run, pid_t child)
{
    int status = 0;
    command_run_watch(run, child);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return STATUS_FAILED;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Its status, or RUN_NOT. Nothing is passed on before there is a command, and nothing is lost: until then the signals wait. One
 * that came before that was for this process, and the command is not run. */
static int command_run_command(struct run *run, char **words)
{
    struct sigaction before[SIGNALS];
    sigset_t all, mask;
    fflush(NULL);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask);
    if (stopping()) {
        sigprocmask(SIG_SETMASK, &mask, NULL);
        return RUN_NOT;
    }
    command_run_take_signals(before);
    pid_t child = fork();
    if (child == 0) {
        command_run_give_signals_back(before);
        stopping_release();
        sigprocmask(SIG_SETMASK, &mask, NULL);
        _exit(launch_exec(&run->roots, run->options.node, words, false));
    }
    if (child < 0)
        error_report("cannot start a process: %s (end other processes and run this again)", strerror(errno));
    running_child = child;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    int status = child < 0 ? STATUS_FAILED : command_run_wait_for(run, child);
    running_child = 0;
    command_run_give_signals_back(before);
    return status;
}

static int command_run_leave(const struct run *run)
{
    int status = STATUS_OK;
    for (size_t i = 0; i < run->roots.count; i++) {
        int answer = leave_root(run->roots.paths[i], run->leave, NULL, NULL);
        status = answer > status ? answer : status;
    }
    return status;
}

/* A signal came before the command, or nothing could be started, perhaps since the daemon got the signal: what was plain is
 * plain again, and the rest as it was. */
static int command_run_undo(struct run *run, bool serves)
{
    int signal = stopping_take();
    if ((!serves || shares_leave(&run->shares) == 0) && run->leave != LEAVE_NEVER)
        leave_undo(&run->roots, run->was_plain);
    return signal != 0 ? 128 + signal : STATUS_FAILED;
}

static int command_run_end_session(struct run *run)
{
    if (shares_leave(&run->shares) < 0)
        return STATUS_FAILED;
    return command_run_leave(run);
}

static int command_run_caught(struct run *run, char **words)
{
    bool serves = shares_enter(&run->shares, &run->roots, &run->options) == 0;
    if (serves && run->quiet != 0)
        background_begin(&run->background, &run->roots, run->options.node, run->quiet);
    int status = serves ? command_run_command(run, words) : RUN_NOT;
    background_end(&run->background);
    if (status == RUN_NOT)
        return command_run_undo(run, serves);
    int end = command_run_end_session(run);
    return status ? status : end;
}

static int command_run_all(struct run *run, char **words)
{
    if (site_is_off())
        return site_command(&run->roots, words);
    if (site_check_variables() < 0)
        return STATUS_FAILED;
    run->options.alone = *scheduler_own() == '\0'; /* of an array some tasks may be on other nodes */
    if (daemon_node(&run->options, run->node) < 0)
        return STATUS_USAGE;
    leave_note_plain(&run->roots, run->was_plain);
    error_outlast_reader();
    program_signals_handle(command_run_forward);
    stopping_catch();
    int status = command_run_caught(run, words);
    int signal = stopping_release();
    return status == STATUS_OK && signal != 0 ? 128 + signal : status;
}

static int command_run_take_options(struct run *run, const struct command *command, int argc, char **argv)
{
    int option;
    while ((option = command_option(command, argc, argv)) >= 0)
        switch (option) {
        case 'r':
            if (roots_add(&run->roots, optarg) < 0)
                return COMMAND_WRONG;
            break;
        case 'n':
            run->node = optarg;
            break;
        case 'p':
            if (daemon_take_placement(command, optarg, &run->options.placement) < 0)
                return COMMAND_WRONG;
            break;
        case 'f':
            if (daemon_take_leaf_full(command, optarg, &run->options.leaf_full) < 0)
                return COMMAND_WRONG;
            break;
        case RUN_EXPORT:
            if (leave_take(command, optarg, &run->leave, &run->quiet) < 0)
                return COMMAND_WRONG;
            break;
        default:
            run->leave = LEAVE_NEVER;
            run->quiet = 0;
        }
    return option;
}

int command_run(const struct command *command, int argc, char **argv)
{
    static struct run run;
    roots_init(&run.roots);
    int end = command_run_take_options(&run, command, argc, argv);
    int status = command_status(end);
    if (end == COMMAND_END && optind == argc)
        status = error_usage(command, "no command is given");
    else if (end == COMMAND_END)
        status = roots_default(&run.roots) < 0 ? STATUS_USAGE : command_run_all(&run, argv + optind);
    roots_finish(&run.roots);
    return status;
}
