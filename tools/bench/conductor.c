/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/conductor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/agent.h"
#include "bench/neighbour.h"
#include "cli/progress.h"

static int conductor_fail(struct conductor *conductor)
{
    conductor->failed = true;
    return -1;
}

static int *conductor_socket_of(struct conductor *conductor, enum talk_kind kind, uint32_t rank)
{
    struct conductor_peer *peer = &conductor->peers[rank];
    return kind == TALK_AGENT ? &peer->agent : &peer->workers[kind];
}

/* Coming together. */

/* A socket for each agent and each worker. */
static void conductor_make_room_for_sockets(uint32_t count)
{
    struct rlimit limit;
    const rlim_t wanted = 64 + (rlim_t)TALK_KINDS * count;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int conductor_start_agent(struct conductor *conductor, uint32_t rank)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal_wait_finish(&conductor->watch);
        close(conductor->meet.listener);
        bool was_heard;
        _exit(agent_run(conductor->plan, conductor->directory, rank, &conductor->meet, &was_heard));
    }
    if (child < 0) {
        error_report("cannot start a process: %s (end other processes and run this again)", strerror(errno));
        return conductor_fail(conductor);
    }
    conductor->peers[rank].child = child;
    return 0;
}

static int conductor_start_agents(struct conductor *conductor)
{
    bool launched = conductor->plan->rank.count > 1;
    for (uint32_t rank = 0; rank < (launched ? 1 : conductor->count); rank++)
        if (conductor_start_agent(conductor, rank) < 0)
            return -1;
    return 0;
}

/* 1: it was expected; 0: not. */
static int conductor_take_hello(struct conductor *conductor, const struct talk_hello *hello, int socket)
{
    if (hello->rank >= conductor->count || hello->kind >= TALK_KINDS || hello->count != conductor->count ||
        *conductor_socket_of(conductor, hello->kind, hello->rank) >= 0) {
        close(socket);
        return 0;
    }
    struct conductor_peer *peer = &conductor->peers[hello->rank];
    *conductor_socket_of(conductor, hello->kind, hello->rank) = socket;
    memcpy(peer->name, hello->node, sizeof peer->name);
    peer->client = hello->client;
    return 1;
}

static int conductor_complain_missing(struct conductor *conductor, enum talk_kind kind, uint32_t missing)
{
    uint32_t rank = 0;
    while (*conductor_socket_of(conductor, kind, rank) >= 0)
        rank++;
    error_report(
        "%u of %u processes, among them process %u: not started within %d s (start all, and give all the same directory)",
        missing, conductor->count, rank, MEET_PATIENCE);
    return conductor_fail(conductor);
}

static bool conductor_has_child_ended(struct conductor *conductor)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0;
}

/* Until all of a kind have said hello. */
static int conductor_gather_shown(struct conductor *conductor, enum talk_kind kind, struct progress *progress)
{
    uint64_t end = clock_monotonic() + MEET_PATIENCE * CLOCK_SECOND;
    for (uint32_t missing = conductor->count; missing > 0;) {
        struct pollfd listener = {.fd = conductor->meet.listener, .events = POLLIN};
        struct talk_hello hello;
        conductor->signal = signal_wait_next(&conductor->watch, &listener, 1, 1000);
        if (conductor->signal > 0)
            return -1;
        if (conductor_has_child_ended(conductor)) /* it has told why */
            return conductor_fail(conductor);
        int socket = listener.revents ? rendezvous_accept(&conductor->meet, &hello) : -EAGAIN;
        if (socket < 0 && socket != -EAGAIN) {
            progress_finish(progress);
            error_report("%u processes: too many open files (raise the limit with 'ulimit -n')", conductor->count);
            return conductor_fail(conductor);
        }
        missing -= socket >= 0 ? (uint32_t)conductor_take_hello(conductor, &hello, socket) : 0;
        if (missing > 0 && clock_monotonic() > end) {
            progress_finish(progress);
            return conductor_complain_missing(conductor, kind, missing);
        }
        if (missing > 0 && progress_due(progress))
            progress_line(progress, "%u of %u processes are here", conductor->count - missing, conductor->count);
    }
    return 0;
}

static int conductor_gather(struct conductor *conductor, enum talk_kind kind)
{
    struct progress progress;
    progress_init(&progress, false);
    int error = conductor_gather_shown(conductor, kind, &progress);
    progress_finish(&progress);
    return error;
}

/* Nodes are numbered as their first processes are. */
static void conductor_number_nodes(struct conductor *conductor)
{
    for (uint32_t i = 0; i < conductor->count; i++) {
        struct conductor_peer *peer = &conductor->peers[i];
        uint32_t same = 0, client = 0;
        while (strcmp(conductor->peers[same].name, peer->name) != 0)
            same++;
        while (conductor->peers[client].client != peer->client)
            client++;
        peer->leads = same == i;
        peer->node = peer->leads ? conductor->nodes++ : conductor->peers[same].node;
        conductor->clients += client == i;
    }
}

static int conductor_find_neighbour(struct conductor *conductor)
{
    uint32_t *node = calloc(2 * (size_t)conductor->count, sizeof *node);
    for (uint32_t i = 0; node && i < conductor->count; i++)
        node[i] = conductor->peers[i].node;
    int error = node ? neighbour_of(node, conductor->count, node + conductor->count) : -ENOMEM;
    for (uint32_t i = 0; error == 0 && i < conductor->count; i++)
        conductor->peers[i].neighbour = node[conductor->count + i];
    free(node);
    if (error == 0)
        return 0;
    error_report("%u processes: not enough memory (use fewer)", conductor->count);
    return conductor_fail(conductor);
}

static int conductor_make_peers(struct conductor *conductor)
{
    conductor->peers = calloc(conductor->count, sizeof *conductor->peers);
    conductor->polls = calloc(conductor->count, sizeof *conductor->polls);
    for (uint32_t i = 0; conductor->peers && i < conductor->count; i++)
        for (int kind = 0; kind < TALK_KINDS; kind++)
            *conductor_socket_of(conductor, (enum talk_kind)kind, i) = -1;
    if (conductor->peers && conductor->polls)
        return 0;
    error_report("%u processes: not enough memory (use fewer)", conductor->count);
    return conductor_fail(conductor);
}

int conductor_init(struct conductor *conductor, const struct plan *plan, const char *directory)
{
    *conductor = (struct conductor){.plan = plan, .directory = directory, .count = (uint32_t)plan->processes};
    conductor->meet.listener = -1;
    if (signal_wait_init(&conductor->watch) < 0)
        return conductor_fail(conductor);
    conductor_make_room_for_sockets(conductor->count);
    if (conductor_make_peers(conductor) < 0 || rendezvous_open(&conductor->meet, directory, plan->rank.count > 1) < 0)
        return conductor_fail(conductor);
    if (conductor_start_agents(conductor) < 0 || conductor_gather(conductor, TALK_AGENT) < 0)
        return -1;
    rendezvous_hide(&conductor->meet);
    conductor_number_nodes(conductor);
    return conductor_find_neighbour(conductor);
}

/* Orders and answers. */

struct asked {
    struct conductor *conductor;
    enum talk_kind kind;
    uint32_t missing;
    uint64_t first, last; /* ns: first begin, last end */
    struct conducted *conducted;
};

static bool conductor_is_asked(const struct conductor *conductor, enum conductor_who who, uint32_t rank)
{
    return who == CONDUCTOR_ALL || (who == CONDUCTOR_FIRST ? rank == 0 : conductor->peers[rank].leads);
}

static int conductor_complain_lost(struct conductor *conductor, uint32_t rank)
{
    error_report("process %u on %s: ended before the benchmark did (see what it said itself, and run this again)", rank,
                 conductor->peers[rank].name);
    return conductor_fail(conductor);
}

static int conductor_complain_answer(struct conductor *conductor, uint32_t rank, const struct talk_answer *answer)
{
    if (answer->words[0])
        error_report("process %u on %s: %.*s: %s (check space, quota and permissions, and run this again)", rank,
                     conductor->peers[rank].name, TALK_WORDS_MAX, answer->words, strerror(-answer->error));
    return conductor_fail(conductor);
}

static int conductor_send_all(struct asked *asked, enum conductor_who who, const struct talk_order *order)
{
    struct conductor *conductor = asked->conductor;
    bool neighbour = order->what == TALK_WORK && plan_has(conductor->plan->neighbour, order->operation);
    for (uint32_t rank = 0; rank < conductor->count; rank++) {
        struct talk_order own = *order;
        if (!conductor_is_asked(conductor, who, rank))
            continue;
        own.owner = neighbour ? conductor->peers[rank].neighbour : rank;
        if (talk_send(*conductor_socket_of(conductor, asked->kind, rank), &own, sizeof own) < 0)
            return conductor_complain_lost(conductor, rank);
        conductor->peers[rank].waits = true;
        asked->missing++;
    }
    return 0;
}

static void conductor_note_answer(struct asked *asked, uint32_t rank, const struct talk_answer *answer)
{
    uint64_t now = clock_monotonic(), began = now - answer->elapsed;
    asked->conductor->peers[rank].waits = false;
    asked->missing--;
    asked->last = now;
    if (asked->first == 0 || began < asked->first)
        asked->first = began;
    if (!asked->conducted)
        return;
    asked->conducted->done += answer->done;
    histogram_merge(&asked->conducted->latency, &answer->latency);
}

static int conductor_take_answer(struct asked *asked, uint32_t rank, int socket)
{
    static struct talk_answer answer;
    if (talk_receive(socket, &answer, sizeof answer) < 0)
        return conductor_complain_lost(asked->conductor, rank);
    if (answer.signal > 0) {
        asked->conductor->signal = answer.signal;
        return -1;
    }
    if (answer.error < 0)
        return conductor_complain_answer(asked->conductor, rank, &answer);
    conductor_note_answer(asked, rank, &answer);
    return 0;
}

/* The sockets to poll: those that owe an answer, and agents, which may have a signal to tell or be
 * lost. */
static void conductor_fill_polls(const struct asked *asked)
{
    for (uint32_t rank = 0; rank < asked->conductor->count; rank++) {
        const struct conductor_peer *peer = &asked->conductor->peers[rank];
        int socket = peer->waits ? *conductor_socket_of(asked->conductor, asked->kind, rank) : peer->agent;
        asked->conductor->polls[rank] = (struct pollfd){.fd = socket, .events = POLLIN};
    }
}

static int conductor_wait_for_all(struct asked *asked)
{
    struct conductor *conductor = asked->conductor;
    while (asked->missing > 0) {
        conductor_fill_polls(asked);
        conductor->signal = signal_wait_next(&conductor->watch, conductor->polls, conductor->count, -1);
        if (conductor->signal > 0)
            return -1;
        for (uint32_t rank = 0; rank < conductor->count; rank++)
            if (conductor->polls[rank].revents && conductor_take_answer(asked, rank, conductor->polls[rank].fd) < 0)
                return -1;
    }
    return 0;
}

int conductor_ask(struct conductor *conductor, enum talk_kind kind, enum conductor_who who, const struct talk_order *order,
                  struct conducted *conducted)
{
    struct asked asked = {.conductor = conductor, .kind = kind, .conducted = conducted};
    if (conducted)
        *conducted = (struct conducted){0};
    if (conductor_send_all(&asked, who, order) < 0 || conductor_wait_for_all(&asked) < 0)
        return -1;
    if (conducted)
        conducted->seconds = (double)(asked.last - asked.first) / 1e9;
    return 0;
}

static int conductor_start_workers(struct conductor *conductor, enum talk_kind kind)
{
    const struct talk_order order = {.what = TALK_WORKERS, .kind = kind};
    if (conductor_ask(conductor, TALK_AGENT, CONDUCTOR_ALL, &order, NULL) < 0)
        return -1;
    return conductor_gather(conductor, kind);
}

int conductor_prepare(struct conductor *conductor, const struct site *site)
{
    const unsigned shunt = 1u << PLAN_SHUNT | 1u << PLAN_SHUNT_PRIVATE, wanted = conductor->plan->configurations;
    const struct talk_order serve = {.what = TALK_SERVE};
    struct talk_order begin = {.what = TALK_BEGIN, .nodes = conductor->nodes};
    snprintf(begin.name, sizeof begin.name, "%s", site->name);
    if (conductor_ask(conductor, TALK_AGENT, CONDUCTOR_ALL, &begin, NULL) < 0)
        return -1;
    if (wanted & ~shunt && conductor_start_workers(conductor, TALK_NATIVE) < 0)
        return -1;
    if (!(wanted & shunt))
        return 0;
    if (conductor_ask(conductor, TALK_AGENT, CONDUCTOR_LEADERS, &serve, NULL) < 0)
        return -1;
    return conductor_start_workers(conductor, TALK_SHIMMED);
}

/* The end. */

static void conductor_close_workers(struct conductor *conductor)
{
    for (uint32_t rank = 0; rank < conductor->count; rank++)
        for (int kind = TALK_NATIVE; kind < TALK_KINDS; kind++) {
            int *socket = conductor_socket_of(conductor, (enum talk_kind)kind, rank);
            if (*socket >= 0)
                close(*socket);
            *socket = -1;
        }
}

/* Peers that are lost already have stopped by themselves, and what else they say comes too late. */
static void conductor_end_agent(struct conductor *conductor, uint32_t rank)
{
    static struct talk_answer answer;
    int *socket = &conductor->peers[rank].agent;
    while (*socket >= 0 && talk_receive(*socket, &answer, sizeof answer) == 0)
        if (answer.error < 0)
            conductor->failed = true;
    if (*socket >= 0)
        close(*socket);
    *socket = -1;
}

int conductor_end(struct conductor *conductor)
{
    const struct talk_order end = {.what = TALK_END};
    if (!conductor->peers)
        return -1;
    conductor_close_workers(conductor);
    for (uint32_t rank = 0; rank < conductor->count; rank++)
        if (conductor->peers[rank].agent >= 0)
            talk_send(conductor->peers[rank].agent, &end, sizeof end);
    for (uint32_t rank = 0; rank < conductor->count; rank++)
        conductor_end_agent(conductor, rank);
    return conductor->failed ? -1 : 0;
}

void conductor_finish(struct conductor *conductor)
{
    conductor_end(conductor);
    rendezvous_close(&conductor->meet); /* an agent that has not been heard finds nobody */
    for (uint32_t rank = 0; conductor->peers && rank < conductor->count; rank++)
        if (conductor->peers[rank].child > 0)
            while (waitpid(conductor->peers[rank].child, NULL, 0) < 0 && errno == EINTR)
                ;
    free(conductor->peers);
    free(conductor->polls);
    signal_wait_finish(&conductor->watch);
}
