/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/plugin_step.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/roots.h"
#include "cli/stopping.h"
#include "launch/agent.h"
#include "launch/arguments.h"
#include "leaving/leave.h"
#include "programs/site.h"
#include "serving/takeover.h"
#include "tree/orphans.h"

#define ROOT_CHOICE                                                                                                            \
    {                                                                                                                          \
        'r', "root", "DIR", "the shared directory; may be given again"                                                         \
    }

#define EXPORT_CHOICE                                                                                                          \
    {                                                                                                                          \
        'e', "export", LEAVE_WORDS, "when to make roots plain directories again (default: now)"                                \
    }

const struct choice plugin_step_choices[] = {ROOT_CHOICE, EXPORT_CHOICE, {0}};
const struct choice plugin_step_keep_choices[] = {
    ROOT_CHOICE,
    EXPORT_CHOICE,
    {'n', "node", "NAME", "what this node is called"},
    {'j', "job", NULL, "a batch script: its session begins and ends here"},
    {0},
};

struct step {
    struct roots roots;
    const char *node;
    bool job;
    enum leave leave;
    uint64_t quiet; /* of --export background, in ns, else 0 */
    int agent_input;
    pid_t agent;
};

/* A status, or COMMAND_END. */
static int plugin_step_take_options(struct step *step, const struct command *command, int argc, char **argv)
{
    int option = 0;
    while (option >= 0 && (option = command_option(command, argc, argv)) >= 0)
        if (option == 'n')
            step->node = optarg;
        else if (option == 'j')
            step->job = true;
        else if (option == 'e')
            option = leave_take(command, optarg, &step->leave, &step->quiet) < 0 ? COMMAND_WRONG : 0;
        else if (roots_add(&step->roots, optarg) < 0)
            return STATUS_FAILED;
    return option == COMMAND_END ? COMMAND_END : command_status(option);
}

/* Roots of a session that this process is in: of the batch script whose step this is. */
static void plugin_step_find_outer(struct roots *outer)
{
    roots_init(outer);
    if (getenv("SHUNT_SERVED"))
        roots_served(outer);
}

static bool plugin_step_is_off(const struct step *step)
{
    return site_is_off() && !site_is_served(&step->roots);
}

static int plugin_step_settle(const struct roots *roots)
{
    int code = 0;
    stopping_catch();
    for (size_t i = 0; i < roots->count && code == 0; i++)
        code = takeover_settle(roots->paths[i], false);
    const int signal = stopping_release();
    for (size_t i = 0; i < roots->count && code == 0 && signal == 0; i++)
        orphans_report(roots->paths[i]);
    return signal > 0 ? 128 + signal : code < 0 ? STATUS_FAILED : STATUS_OK;
}

int plugin_step_begin(const struct command *command, int argc, char **argv)
{
    static struct step step;
    int status = plugin_step_take_options(&step, command, argc, argv);
    if (status == COMMAND_END)
        status = plugin_step_is_off(&step) ? STATUS_OK : plugin_step_settle(&step.roots); /* each node says what that means */
    roots_finish(&step.roots);
    return status;
}

static int plugin_step_leave(const struct roots *roots, enum leave leave)
{
    struct roots outer;
    int status = STATUS_OK;
    plugin_step_find_outer(&outer);
    for (size_t i = 0; i < roots->count; i++) {
        const int left = roots_has(&outer, roots->paths[i]) ? STATUS_OK : leave_root(roots->paths[i], leave, NULL, NULL);
        status = left != STATUS_OK ? left : status;
    }
    roots_finish(&outer);
    return status;
}

int plugin_step_end(const struct command *command, int argc, char **argv)
{
    static struct step step;
    int status = plugin_step_take_options(&step, command, argc, argv);
    if (status == COMMAND_END)
        status = plugin_step_leave(&step.roots, step.leave);
    roots_finish(&step.roots);
    return status;
}

/* On a node. */

/* A signal for a step may go to all of its processes (by ProctrackType and version) though it is meant for the programs: the
 * first are ignored by all here, the second by this process alone, since the agent knows what to do. */
static const int plugin_step_for_programs[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGTSTP, SIGTTIN, SIGTTOU, 0};
static const int plugin_step_ending[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, 0};

static void plugin_step_handle(const int *signals, void (*handler)(int))
{
    for (; *signals != 0; signals++)
        signal(*signals, handler);
}

/* The agent has each root of this step, and those of the session around it: else a step would not see their files. */
static void plugin_step_compose_agent(const struct step *step, struct arguments *words)
{
    struct roots outer;
    arguments_init(words);
    arguments_add(words, "shunt-launch");
    arguments_add(words, AGENT);
    for (size_t i = 0; i < step->roots.count; i++) {
        arguments_add(words, "--root");
        arguments_add(words, step->roots.paths[i]);
    }
    plugin_step_find_outer(&outer);
    for (size_t i = 0; i < outer.count; i++) {
        arguments_add(words, "--root");
        arguments_add(words, outer.paths[i]);
    }
    roots_finish(&outer);
    if (step->node) {
        arguments_add(words, "--node");
        arguments_add(words, step->node);
    }
    if (step->quiet != 0) {
        arguments_add(words, "--" AGENT_QUIET);
        arguments_format(words, "%" PRIu64, (uint64_t)(step->quiet / CLOCK_SECOND));
    }
}

static void plugin_step_become_agent(const struct step *step, int input)
{
    static const char *const settings[] = {"SHUNT_ROOT", "SHUNT_ROOT_ID", "SHUNT_SERVED", "SHUNT_NODE"};
    struct arguments words;
    plugin_step_compose_agent(step, &words);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        unsetenv(settings[i]);
    dup2(input, STDIN_FILENO);
    if (!words.full)
        execv("/proc/self/exe", words.at);
    error_report("/proc/self/exe: cannot be executed (mount /proc)");
    _exit(STATUS_FAILED);
}

static int plugin_step_start_agent(struct step *step)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    step->agent = fork();
    if (step->agent == 0)
        plugin_step_become_agent(step, ends[0]);
    close(ends[0]);
    step->agent_input = ends[1];
    return step->agent < 0 ? -1 : 0;
}

/* Is the export asked for? */
static bool plugin_step_await_end(void)
{
    char bytes[64];
    bool exports = false;
    for (ssize_t length; (length = read(STDIN_FILENO, bytes, sizeof bytes)) != 0;) {
        if (length < 0 && errno != EINTR)
            break;
        exports |= length == sizeof STEP_EXPORT - 1 && !memcmp(bytes, STEP_EXPORT, sizeof STEP_EXPORT - 1);
    }
    return exports;
}

static int plugin_step_do_without(const struct step *step)
{
    if (site_do_without(&step->roots, "programs run without it") < 0)
        return STATUS_FAILED;
    printf(AGENT_WORD " %s " STEP_OFF "\n", step->node ? step->node : "");
    return fflush(stdout) == 0 ? STATUS_OK : STATUS_FAILED;
}

static int plugin_step_keep_node(struct step *step)
{
    plugin_step_handle(plugin_step_for_programs, SIG_IGN);
    if (plugin_step_is_off(step))
        return plugin_step_do_without(step);
    if (step->job && plugin_step_settle(&step->roots) != STATUS_OK)
        return STATUS_FAILED;
    if (plugin_step_start_agent(step) < 0) {
        error_report("cannot start a process: %s (end other processes and run this again)", strerror(errno));
        return STATUS_FAILED;
    }
    plugin_step_handle(plugin_step_ending, SIG_IGN);
    const bool exports = plugin_step_await_end();
    close(step->agent_input);
    while (waitpid(step->agent, NULL, 0) < 0 && errno == EINTR)
        continue;
    plugin_step_handle(plugin_step_ending, SIG_DFL); /* an export ends in order */
    return exports && step->job ? plugin_step_leave(&step->roots, step->leave) : STATUS_OK;
}

int plugin_step_keep(const struct command *command, int argc, char **argv)
{
    static struct step step;
    int status = plugin_step_take_options(&step, command, argc, argv);
    if (status == COMMAND_END)
        status = plugin_step_keep_node(&step);
    roots_finish(&step.roots);
    return status;
}
