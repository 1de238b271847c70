/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/agent.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/program_signals.h"
#include "cli/signal_wait.h"
#include "config/config.h"
#include "leaving/background.h"
#include "leaving/live.h"
#include "leaving/owner.h"
#include "serving/counters.h"
#include "serving/daemon.h"
#include "serving/kept.h"
#include "serving/share.h"
#include "session/session.h"
#include "union/layout.h"

#define PATIENCE 60 /* seconds for a daemon to end */

const struct choice agent_choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again"},
    {'o', AGENT_OUTER, "DIR", "one of the session around the launch; may be given again"},
    {'n', "node", "NAME", "what this node is called"},
    {'p', "placement", "auto|branch", "as of start"},
    {'f', "leaf-full", "N", "as of start"},
    {'q', AGENT_QUIET, "SECONDS", "files leave in the background"},
    {'e', AGENT_HELPS, NULL, "renames files at the orders of an export, and starts no daemon"},
    {0},
};

struct agent_process {
    struct roots roots, outer;
    struct daemon_options options;
    const char *node;
    bool wrong;     /* a root is not there */
    bool rests;     /* it stays for an export */
    bool helps;     /* ... and does nothing else */
    uint64_t quiet; /* of --export background, in seconds, else 0 */
    struct background background;
    struct signal_wait watch;
    struct shares shares;
};

static void agent_tell(const struct agent_process *agent, const char *word)
{
    printf(AGENT_WORD " %s %s\n", agent->options.node, word);
    fflush(stdout);
}

/* A daemon has become a child of this process when that which started it ended. False: there is none left. */
static bool agent_reap(void)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        continue;
    return pid == 0;
}

/* At the end of the input, or at AGENT_REST, which is its first line. */
static bool agent_input_ends(struct agent_process *agent)
{
    char bytes[sizeof AGENT_REST];
    ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
    agent->rests |= length == sizeof bytes && memcmp(bytes, AGENT_REST "\n", sizeof bytes) == 0;
    return agent->rests || length == 0 || (length < 0 && errno != EINTR && errno != EAGAIN);
}

/* Until standard input ends, or a second signal comes, or the time after the first is over. */
static void agent_keep(struct agent_process *agent)
{
    static struct pollfd watched[1 + ROOTS_MAX];
    uint64_t end = 0;
    watched[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    while (end == 0 || clock_monotonic() < end) {
        const size_t count = shares_watch(&agent->shares, watched + 1);
        int signal = signal_wait_next(&agent->watch, watched, 1 + count, end ? 1000 : -1);
        if (watched[0].revents && agent_input_ends(agent))
            return;
        if (signal > 0 && end)
            return;
        if (signal > 0)
            end = clock_monotonic() + KEPT_GRACE * CLOCK_SECOND;
        agent_reap();
        if (end == 0 && shares_renew(&agent->shares, watched + 1) != 0)
            agent_tell(agent, AGENT_DIED);
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
    for (size_t i = 0; i < agent->shares.count; i++)
        agent_count(agent, agent->roots.paths[i], &counts);
    printf(AGENT_WORD " %s " AGENT_COUNTED " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", agent->options.node, counts.operations,
           counts.redirected, counts.waited_ms);
    fflush(stdout);
}

/* Those that no session knows of any more. */
static bool agent_end_children(struct agent_process *agent)
{
    const uint64_t end = clock_monotonic() + PATIENCE * CLOCK_SECOND;
    int pid;
    FILE *children = fopen("/proc/thread-self/children", "re");
    while (children != NULL && fscanf(children, "%d", &pid) == 1)
        kill(pid, SIGTERM);
    if (children != NULL)
        fclose(children);
    bool are_left = agent_reap();
    for (; are_left && clock_monotonic() < end; are_left = agent_reap())
        signal_wait_next(&agent->watch, NULL, 0, 1000);
    return !are_left;
}

static bool agent_stop(struct agent_process *agent)
{
    agent_tell_counts(agent);
    bool stopped = shares_leave(&agent->shares) == 0;
    if (agent->shares.left == 0)
        stopped = agent_end_children(agent) && stopped;
    agent_tell(agent, stopped ? AGENT_STOPPED : AGENT_STUCK);
    return stopped;
}

/* Orders of the export that follows. */

struct agent_orders {
    const struct agent_process *agent;
    uint64_t told;  /* when it was said how far it is */
    bool is_at_end; /* of the input */
    size_t length;
    char text[OWNER_LINE_MAX];
};

/* What there is, or the next bytes. No line of ours is longer than the text. */
static void agent_read_orders(struct agent_orders *orders)
{
    if (orders->length == sizeof orders->text)
        orders->length = 0;
    const ssize_t more = read(STDIN_FILENO, orders->text + orders->length, sizeof orders->text - orders->length);
    orders->length += more > 0 ? (size_t)more : 0;
    orders->is_at_end = more == 0 || (more < 0 && errno != EINTR);
}

static bool agent_is_meant(const struct agent_process *agent, const char *branch)
{
    char node[LAYOUT_BRANCH_MAX];
    return owner_node_of(branch, node) && strcmp(node, agent->options.node) == 0;
}

/* The next one for this node. A launcher may hand all lines to all nodes. */
static bool agent_next_order(struct agent_orders *orders, struct owner_order *order)
{
    bool is_meant = false;
    for (char *end; !is_meant && (end = memchr(orders->text, '\n', orders->length)) != NULL;) {
        *end = '\0';
        is_meant = owner_order_parse(order, orders->text) == 0 && agent_is_meant(orders->agent, order->branch);
        orders->length -= (size_t)(end + 1 - orders->text);
        memmove(orders->text, end + 1, orders->length);
    }
    return is_meant;
}

/* One is enough at a time: what comes meanwhile is for other nodes, and is read, lest it fills the pipe. */
static void agent_skip_orders(struct agent_orders *orders)
{
    static struct owner_order other;
    agent_read_orders(orders);
    while (agent_next_order(orders, &other))
        continue;
}

/* As long as the launch is on the other end of the input: a pipe of it, or a socket of sshd's. */
static bool agent_goes_on(void *context, uint64_t files)
{
    struct agent_orders *orders = context;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN | POLLRDHUP};
    if (poll(&input, 1, 0) > 0) {
        if ((input.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0)
            return false;
        agent_skip_orders(orders);
    }
    if (orders->is_at_end || clock_monotonic() < orders->told + CLOCK_SECOND / 2)
        return !orders->is_at_end;
    orders->told = clock_monotonic();
    printf(AGENT_WORD " %s " AGENT_MOVING " %" PRIu64 "\n", orders->agent->options.node, files);
    return fflush(stdout) == 0;
}

static void agent_carry_out(struct agent_orders *orders, const struct owner_order *order)
{
    struct owner_answer answer;
    orders->told = clock_monotonic();
    owner_carry_out(order, agent_goes_on, orders, &answer);
    printf(AGENT_WORD " %s " AGENT_MOVED " %" PRIu64 " %" PRIu64 "\n", orders->agent->options.node, answer.files,
           answer.looked);
    fflush(stdout);
}

static void agent_take_orders(const struct agent_process *agent)
{
    static struct agent_orders orders;
    static struct owner_order order;
    orders.agent = agent;
    while (!orders.is_at_end) {
        agent_read_orders(&orders);
        while (agent_next_order(&orders, &order))
            agent_carry_out(&orders, &order);
    }
}

/* No daemon: what other nodes start for an export that is not at the end of a launch. */
static void agent_help(struct agent_process *agent)
{
    const bool helps = daemon_node(&agent->options, agent->node) == 0;
    signal(SIGPIPE, SIG_IGN);
    agent_tell(agent, helps ? AGENT_SERVES : AGENT_FAILED);
    if (helps)
        agent_take_orders(agent);
}

/* Roots of the session around the launch that no daemon of `shunt start` serves here. */
static void agent_add_outer(struct agent_process *agent)
{
    for (size_t i = 0; i < agent->outer.count; i++)
        if (!share_is_started(agent->outer.paths[i], agent->options.node))
            agent->wrong |= roots_add(&agent->roots, agent->outer.paths[i]) < 0;
}

static bool agent_begin(struct agent_process *agent)
{
    if (daemon_node(&agent->options, agent->node) < 0)
        return false;
    agent_add_outer(agent);
    return !agent->wrong && shares_enter(&agent->shares, &agent->roots, &agent->options) == 0;
}

static void agent_serve(struct agent_process *agent)
{
    struct roots own = agent->roots; /* the paths are the agent's */
    kept_adopt();
    signal_wait_init(&agent->watch); /* a signal waits until the daemon serves */
    const bool serves = agent_begin(agent);
    signal(SIGPIPE, SIG_IGN);
    agent_tell(agent, serves ? AGENT_SERVES : AGENT_FAILED);
    if (serves && agent->quiet != 0)
        background_begin(&agent->background, &own, agent->options.node, agent->quiet * CLOCK_SECOND);
    agent_keep(agent);
    background_end(&agent->background);
    if (agent_stop(agent) && agent->rests)
        agent_take_orders(agent);
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
        case 'o':
            agent->wrong |= roots_add(&agent->outer, optarg) < 0;
            break;
        case 'n':
            agent->node = optarg;
            break;
        case 'p':
            agent->options.placement = optarg;
            break;
        case 'e':
            agent->helps = true;
            break;
        case 'q':
            agent->wrong |= config_number_parse(optarg, LIVE_QUIET_MAX, &agent->quiet) != 0;
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
    program_signals_ignore();
    if (end == COMMAND_END && agent.helps)
        agent_help(&agent);
    else if (end == COMMAND_END)
        agent_serve(&agent);
    roots_finish(&agent.roots);
    roots_finish(&agent.outer);
    return command_status(end);
}
