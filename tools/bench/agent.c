/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/sys.h"
#include "bench/site.h"
#include "bench/worker.h"
#include "cli/progress.h"
#include "cli/signal_wait.h"
#include "launch/nodes.h"
#include "programs/launch.h"
#include "serving/daemon.h"

#define LOOK_AGAIN 50 /* ms */

struct agent {
    const struct plan *plan;
    const struct rendezvous *meet;
    struct signal_wait watch;
    struct talk_hello hello;
    struct daemon_options options;
    int socket;
    char top[PATH_MAX];
    struct roots roots; /* that of this benchmark */
    pid_t workers[TALK_KINDS];
    bool serves;
    bool was_heard; /* by the conductor: it has said something */
};

static int agent_name_node(struct agent *agent)
{
    char fake[32];
    snprintf(fake, sizeof fake, NODES_FAKE, agent->plan->fakes ? (size_t)(agent->hello.rank % agent->plan->fakes) : 0);
    if (daemon_node(&agent->options, agent->plan->fakes ? fake : NULL) < 0)
        return -1;
    snprintf(agent->hello.node, sizeof agent->hello.node, "%s", agent->options.node);
    return 0;
}

/* Two mounts on one host are two clients of a file system; two processes on one mount are one. */
static uint64_t agent_client_of(const char *directory)
{
    struct stat found = {0};
    uint64_t both[2] = {rendezvous_host()};
    if (stat(directory, &found) == 0)
        both[1] = found.st_dev;
    return XXH3_64bits(both, sizeof both);
}

static int agent_take_top(struct agent *agent, const char *directory, const struct talk_order *order)
{
    struct stat found;
    snprintf(agent->top, sizeof agent->top, "%s/%.*s", strcmp(directory, "/") ? directory : "", (int)sizeof order->name,
             order->name);
    agent->options.alone = order->nodes == 1;
    if (stat(agent->top, &found) == 0)
        return 0;
    error_report("%s: process %u on %s does not see this directory (give all processes the same shared directory)", agent->top,
                 agent->hello.rank, nodes_here());
    return -ENOENT;
}

static int agent_wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Forks a process that has the signals of before. */
static pid_t agent_split(const struct agent *agent)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        sigprocmask(SIG_SETMASK, &agent->watch.before, NULL);
    if (child < 0)
        error_report("cannot start a process: %s (end other processes and run this again)", strerror(errno));
    return child;
}

/* By a child: a signal meanwhile must end neither this process nor the daemon, nor be blocked in that. */
static int agent_serve(struct agent *agent)
{
    char root[PATH_MAX + sizeof SITE_ROOT];
    snprintf(root, sizeof root, "%s/" SITE_ROOT, agent->top);
    agent->options.placement = agent->plan->placement;
    agent->options.leaf_full = agent->plan->leaf_full;
    agent->options.orphans_told = true;
    if (roots_add(&agent->roots, root) < 0)
        return -EINVAL;
    pid_t child = agent_split(agent);
    if (child == 0)
        _exit(daemon_start(&agent->roots, &agent->options) < 0);
    agent->serves = child > 0 && agent_wait_for(child) == 0;
    return agent->serves ? 0 : -EIO;
}

static void agent_become_worker(struct agent *agent, enum talk_kind kind, int socket)
{
    char own[PATH_MAX] = "";
    char *words[] = {own, WORKER, agent->top, NULL};
    if (readlink("/proc/self/exe", own, sizeof own - 1) > 0)
        dup2(socket, STDIN_FILENO);
    if (kind == TALK_SHIMMED)
        _exit(launch_exec(&agent->roots, agent->options.node, words, false));
    SYS3(SYS_execve, own, words, environ);
    error_report("/proc/self/exe: cannot be executed (mount /proc)");
    _exit(STATUS_FAILED);
}

static int agent_start_worker(struct agent *agent, enum talk_kind kind)
{
    struct talk_hello hello = agent->hello;
    char root[PATH_MAX + sizeof SITE_ROOT];
    snprintf(root, sizeof root, "%s/" SITE_ROOT, agent->top);
    if (kind == TALK_SHIMMED && roots_add(&agent->roots, root) < 0)
        return -EINVAL;
    hello.kind = kind;
    int socket = rendezvous_connect(agent->meet, &hello);
    if (socket < 0)
        return socket;
    agent->workers[kind] = agent_split(agent);
    if (agent->workers[kind] == 0)
        agent_become_worker(agent, kind, socket);
    close(socket);
    return agent->workers[kind] < 0 ? -EAGAIN : 0;
}

/* The workers end when the conductor has closed their sockets. */
static int agent_finish(struct agent *agent)
{
    int error = 0;
    for (int kind = TALK_NATIVE; kind < TALK_KINDS; kind++)
        if (agent->workers[kind] > 0)
            agent_wait_for(agent->workers[kind]);
    if (agent->serves && daemon_stop(agent->roots.paths[0], agent->options.node) < 0)
        error = -EIO;
    agent->serves = false;
    roots_finish(&agent->roots);
    return error;
}

static int agent_obey(struct agent *agent, const char *directory, const struct talk_order *order)
{
    switch (order->what) {
    case TALK_BEGIN:
        return agent_take_top(agent, directory, order);
    case TALK_SERVE:
        return agent_serve(agent);
    case TALK_WORKERS:
        return agent_start_worker(agent, order->kind);
    default:
        return agent_finish(agent);
    }
}

static int agent_answer(struct agent *agent, int error, int signal)
{
    static struct talk_answer words;
    words = (struct talk_answer){.error = error, .signal = signal};
    return talk_send(agent->socket, &words, sizeof words);
}

/* A signal is the conductor's to act upon: all end, or none. */
static void agent_listen_to_conductor(struct agent *agent, const char *directory)
{
    struct talk_order order = {0};
    struct pollfd conductor = {.fd = agent->socket, .events = POLLIN};
    while (order.what != TALK_END) {
        int signal = signal_wait_next(&agent->watch, &conductor, 1, -1);
        if (signal > 0)
            agent_answer(agent, 0, signal);
        if (!conductor.revents)
            continue;
        if (talk_receive(agent->socket, &order, sizeof order) < 0)
            return;
        agent->was_heard = true;
        agent_answer(agent, agent_obey(agent, directory, &order), 0);
    }
}

static int agent_work_with(struct agent *agent, const char *directory)
{
    agent->socket = rendezvous_connect(agent->meet, &agent->hello);
    if (agent->socket < 0) {
        error_report(
            "process %u on %s: cannot connect to process 0: %s (run 'shunt doctor --host HOST' with the host of process "
            "0)",
            agent->hello.rank, nodes_here(), strerror(-agent->socket));
        return STATUS_FAILED;
    }
    agent_listen_to_conductor(agent, directory);
    int error = agent_finish(agent);
    close(agent->socket);
    return error < 0 ? STATUS_FAILED : STATUS_OK;
}

int agent_run(const struct plan *plan, const char *directory, uint32_t rank, const struct rendezvous *meet, bool *was_heard)
{
    struct agent agent = {.plan = plan, .meet = meet, .hello = {.rank = rank, .count = (uint32_t)plan->processes}};
    roots_init(&agent.roots);
    agent.hello.client = agent_client_of(directory);
    if (agent_name_node(&agent) < 0 || signal_wait_init(&agent.watch) < 0)
        return STATUS_FAILED;
    int status = agent_work_with(&agent, directory);
    signal_wait_finish(&agent.watch);
    *was_heard = agent.was_heard;
    return status;
}

/* Another program may listen at the port of a process that was killed. */
static bool agent_sees_first(const char *directory, struct rendezvous *meet)
{
    return rendezvous_read(meet, directory) == 0 && session_lives(&meet->writer) != 0 && rendezvous_answers(meet);
}

/* Until there is a file whose writer listens: one may have been left by a process that was killed, until process 0 comes. */
static int agent_find_first(const char *directory, struct rendezvous *meet, struct signal_wait *watch)
{
    uint64_t end = clock_monotonic() + MEET_PATIENCE * CLOCK_SECOND;
    struct progress progress;
    int signal = 0;
    bool found, late = false;
    progress_init(&progress, false);
    while (!(found = agent_sees_first(directory, meet)) && signal <= 0 && !late) {
        if (progress_due(&progress))
            progress_line(&progress, "waiting for process 0 to write %s/" MEET_FILE, directory);
        signal = signal_wait_next(watch, NULL, 0, LOOK_AGAIN);
        late = clock_monotonic() >= end;
    }
    progress_finish(&progress);
    if (found || signal > 0)
        return found ? STATUS_OK : 128 + signal;
    error_report("%s/" MEET_FILE
                 ": process 0 has not written it within %d s, or does not answer (start all processes, and give all the same "
                 "directory; 'shunt doctor --host HOST' looks at the network)",
                 directory, MEET_PATIENCE);
    return STATUS_FAILED;
}

int agent_join(const struct plan *plan, const char *directory)
{
    struct signal_wait watch;
    struct rendezvous meet;
    int status = STATUS_OK;
    for (bool was_heard = false; status == STATUS_OK && !was_heard;) { /* one that was about to end has not looked who came */
        if (signal_wait_init(&watch) < 0)
            return STATUS_FAILED;
        status = agent_find_first(directory, &meet, &watch);
        signal_wait_finish(&watch);
        if (status == STATUS_OK)
            status = agent_run(plan, directory, plan->rank.number, &meet, &was_heard);
    }
    return status;
}
