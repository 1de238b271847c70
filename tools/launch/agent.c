/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/agent.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "counters.h"
#include "daemon.h"
#include "launch/signal_wait.h"
#include "session/session.h"

/* A batch system that ends a job tells all of its processes. The programs may still write then, so the
 * daemons go on until the launch says that these have ended, but not for longer than this. */
#define GRACE 15    /* seconds */
#define PATIENCE 60 /* seconds for a daemon to write down its work */

const struct choice agent_choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again"},
    {'n', "node", "NAME", "what this node is called"},
    {'p', "placement", "auto|branch", "as of start"},
    {'f', "leaf-full", "N", "as of start"},
    {0},
};

struct agent_process {
    struct roots roots;
    struct daemon_options options;
    const char *node;
    bool wrong; /* a root is not there */
    struct signal_wait watch;
    size_t count; /* of daemons that live */
    pid_t daemons[ROOTS_MAX];
};

static void agent_tell(const struct agent_process *agent, const char *word)
{
    printf(AGENT_WORD " %s %s\n", agent->options.node, word);
    fflush(stdout);
}

static pid_t agent_parent_of(const char *pid)
{
    char path[64], state;
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*d (%*[^)]) %c %d", &state, &parent) != 2)
        parent = 0;
    fclose(file);
    return parent;
}

/* The daemons have become children of this process when those that started them ended. */
static void agent_find_daemons(struct agent_process *agent)
{
    DIR *processes = opendir("/proc");
    if (!processes)
        return;
    for (struct dirent *entry; (entry = readdir(processes)) && agent->count < ROOTS_MAX;)
        if (atoi(entry->d_name) > 0 && agent_parent_of(entry->d_name) == getpid())
            agent->daemons[agent->count++] = atoi(entry->d_name);
    closedir(processes);
}

static void agent_reap(struct agent_process *agent)
{
    for (size_t i = 0; i < agent->count;)
        if (waitpid(agent->daemons[i], NULL, WNOHANG) != 0)
            agent->daemons[i] = agent->daemons[--agent->count];
        else
            i++;
}

static bool agent_input_ends(void)
{
    char bytes[512];
    ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
    return length == 0 || (length < 0 && errno != EINTR && errno != EAGAIN);
}

/* Until standard input ends, or a second signal comes, or the time after the first is over. */
static void agent_keep(struct agent_process *agent)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    uint64_t end = 0;
    for (size_t served = agent->count; end == 0 || clock_monotonic() < end;) {
        int signal = signal_wait_next(&agent->watch, &input, 1, end ? 1000 : -1);
        if (input.revents && agent_input_ends())
            return;
        if (signal > 0 && end)
            return;
        if (signal > 0)
            end = clock_monotonic() + GRACE * CLOCK_SECOND;
        agent_reap(agent);
        if (agent->count < served)
            agent_tell(agent, AGENT_DIED);
        served = agent->count;
    }
}

/* What the daemon of a root counted; nothing if it does not answer. */
static void agent_count(const struct agent_process *agent, const char *root, struct agent_counts *counts)
{
    static struct counters counters;
    static const char *const operations[] = {"creates", "unlinks", "renames"};
    struct session session;
    uint64_t value;
    const struct session_member *member =
        session_read(root, &session) == 0 ? session_find_node(&session, agent->options.node) : NULL;
    if (member != NULL && counters_ask(&counters, member->run_dir, false) == 0) {
        for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
            counts->operations += counters_value(&counters, operations[i], &value) ? value : 0;
        counts->redirected += counters_value(&counters, "redirected", &value) ? value : 0;
        counts->waited_ms += counters_value(&counters, "waited_ms", &value) ? value : 0;
    }
    session_finish(&session);
}

static void agent_tell_counts(const struct agent_process *agent)
{
    struct agent_counts counts = {0};
    for (size_t i = 0; i < agent->roots.count && agent->count > 0; i++)
        agent_count(agent, agent->roots.paths[i], &counts);
    printf(AGENT_WORD " %s " AGENT_COUNTED " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", agent->options.node, counts.operations,
           counts.redirected, counts.waited_ms);
    fflush(stdout);
}

static void agent_stop(struct agent_process *agent)
{
    agent_tell_counts(agent);
    uint64_t end = clock_monotonic() + PATIENCE * CLOCK_SECOND;
    for (size_t i = 0; i < agent->count; i++)
        kill(agent->daemons[i], SIGTERM);
    for (agent_reap(agent); agent->count > 0 && clock_monotonic() < end; agent_reap(agent))
        signal_wait_next(&agent->watch, NULL, 0, 1000);
    for (size_t i = 0; i < agent->count; i++)
        error_report("%s: shuntd (process %d) has not ended after %d s (see its log; if it hangs, run 'kill -KILL %d')",
                     agent->options.node, (int)agent->daemons[i], PATIENCE, (int)agent->daemons[i]);
    agent_tell(agent, agent->count == 0 ? AGENT_STOPPED : AGENT_STUCK);
}

static void agent_serve(struct agent_process *agent)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal_wait_init(&agent->watch); /* a signal waits until the daemon serves */
    bool serves =
        daemon_node(&agent->options, agent->node) == 0 && !agent->wrong && daemon_start(&agent->roots, &agent->options) == 0;
    signal(SIGPIPE, SIG_IGN);
    if (serves)
        agent_find_daemons(agent);
    agent_tell(agent, serves ? AGENT_SERVES : AGENT_FAILED);
    agent_keep(agent);
    agent_stop(agent);
    signal_wait_finish(&agent->watch);
}

static int agent_take_options(struct agent_process *agent, const struct command *command, int argc, char **argv)
{
    int option;
    while ((option = command_option(command, argc, argv)) >= 0)
        switch (option) {
        case 'r':
            agent->wrong |= roots_add(&agent->roots, optarg) < 0;
            break;
        case 'n':
            agent->node = optarg;
            break;
        case 'p':
            agent->options.placement = optarg;
            break;
        default:
            agent->options.leaf_full = optarg;
        }
    return option;
}

int agent(const struct command *command, int argc, char **argv)
{
    static struct agent_process agent = {.options = {.orphans_told = true, .settled = true}};
    int end = agent_take_options(&agent, command, argc, argv);
    if (end == COMMAND_END)
        agent_serve(&agent);
    roots_finish(&agent.roots);
    return command_status(end);
}
