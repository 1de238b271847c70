/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/agent.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "counters.h"
#include "daemon.h"
#include "kept.h"
#include "signal_wait.h"
#include "session/session.h"

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
    struct kept kept;
};

static void agent_tell(const struct agent_process *agent, const char *word)
{
    printf(AGENT_WORD " %s %s\n", agent->options.node, word);
    fflush(stdout);
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
    for (size_t served = agent->kept.count; end == 0 || clock_monotonic() < end;) {
        int signal = signal_wait_next(&agent->watch, &input, 1, end ? 1000 : -1);
        if (input.revents && agent_input_ends())
            return;
        if (signal > 0 && end)
            return;
        if (signal > 0)
            end = clock_monotonic() + KEPT_GRACE * CLOCK_SECOND;
        kept_reap(&agent->kept);
        if (agent->kept.count < served)
            agent_tell(agent, AGENT_DIED);
        served = agent->kept.count;
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
    for (size_t i = 0; i < agent->roots.count && agent->kept.count > 0; i++)
        agent_count(agent, agent->roots.paths[i], &counts);
    printf(AGENT_WORD " %s " AGENT_COUNTED " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", agent->options.node, counts.operations,
           counts.redirected, counts.waited_ms);
    fflush(stdout);
}

static void agent_stop(struct agent_process *agent)
{
    agent_tell_counts(agent);
    kept_end(&agent->kept, &agent->watch, agent->options.node);
    agent_tell(agent, agent->kept.count == 0 ? AGENT_STOPPED : AGENT_STUCK);
}

static void agent_serve(struct agent_process *agent)
{
    kept_adopt();
    signal_wait_init(&agent->watch); /* a signal waits until the daemon serves */
    bool serves =
        daemon_node(&agent->options, agent->node) == 0 && !agent->wrong && daemon_start(&agent->roots, &agent->options) == 0;
    signal(SIGPIPE, SIG_IGN);
    if (serves)
        kept_find(&agent->kept);
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
