/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/agents_rest.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "stopping.h"

#define REST_STOP 10    /* seconds without another daemon that has stopped: then no agent rests */
#define REST_END 90     /* seconds for agents to end */
#define REST_SILENCE 60 /* after which a node is given up that says no more how far it is */
#define REST_LOOK 200   /* ms, how often it is looked whether the export is to stop */

bool agents_rest_has_others(const struct agents *agents)
{
    for (size_t i = 0; i < agents->count; i++)
        if (!agents->members[i].is_here)
            return true;
    return false;
}

static bool agents_rest_tell(struct agents_member *member, const char *line)
{
    const size_t length = strlen(line);
    size_t done = 0;
    while (member->to >= 0 && done < length) {
        const ssize_t wrote = write(member->to, line + done, length - done);
        if (wrote <= 0)
            return false;
        done += (size_t)wrote;
    }
    return done == length;
}

static size_t agents_rest_count_stopped(const struct agents *agents)
{
    size_t count = 0;
    for (size_t i = 0; i < agents->count; i++)
        count += agents->members[i].stopped;
    return count;
}

static bool agents_rest_are_stopping(const struct agents *agents)
{
    for (size_t i = 0; i < agents->count; i++) {
        const struct agents_member *member = &agents->members[i];
        if (member->pid > 0 && member->stopped + member->stuck < member->served)
            return true;
    }
    return false;
}

static bool agents_rest_have_stopped(const struct agents *agents)
{
    for (size_t i = 0; i < agents->count; i++)
        if (agents->members[i].stopped < agents->members[i].served)
            return false;
    return true;
}

/* As long as one after the other stops. A node that was lost does not: those that rest keep the launcher from ending, which
 * would tell. The number of a signal, or 0. */
static int agents_rest_await_stops(struct agents *agents, struct signal_wait *watch)
{
    size_t stopped = 0;
    int sign = 0;
    for (uint64_t end = clock_monotonic() + REST_STOP * CLOCK_SECOND;
         sign == 0 && agents_rest_are_stopping(agents) && clock_monotonic() < end;) {
        sign = agents_wait(agents, watch, 1000);
        if (agents_rest_count_stopped(agents) > stopped)
            end = clock_monotonic() + REST_STOP * CLOCK_SECOND;
        stopped = agents_rest_count_stopped(agents);
    }
    return sign;
}

int agents_rest_begin(struct agents *agents, struct signal_wait *watch)
{
    signal(SIGPIPE, SIG_IGN); /* of an agent that has ended; nothing is started from here on */
    agents->dismissed = true;
    for (size_t i = 0; i < agents->count; i++)
        agents->members[i].is_lost = !agents_rest_tell(&agents->members[i], AGENT_REST "\n");
    const int sign = agents_rest_await_stops(agents, watch);
    if (sign == 0 && agents_rest_have_stopped(agents))
        return 0;
    const int stopped = agents_stop(agents, watch);
    return sign > 0 ? sign : stopped;
}

static struct agents_member *agents_rest_find(const struct agents *agents, const char *node)
{
    for (size_t i = 0; i < agents->named_count; i++)
        if (strcmp(agents->named[i].name, node) == 0)
            return agents->named[i].member;
    return NULL;
}

static bool agents_rest_has(void *context, const char *node)
{
    const struct agents_member *member = agents_rest_find(context, node);
    return member != NULL && !member->is_here && !member->is_lost && member->pid > 0;
}

/* Until it has answered, or does not go on. One that is to stop is told by the end of its input, and waited for. */
static void agents_rest_await(struct agents *agents, struct agents_member *member, void (*shows)(void *to, uint64_t files),
                              void *to)
{
    struct agents_order *order = &agents->order;
    while (!order->answered && member->pid > 0 && clock_monotonic() < order->heard + REST_SILENCE * CLOCK_SECOND) {
        if (stopping())
            agents_dismiss(agents);
        agents_wait(agents, NULL, REST_LOOK);
        shows(to, order->files);
    }
}

static int agents_rest_order(void *context, const char *node, const char *line, void (*shows)(void *to, uint64_t files),
                             void *to, struct owner_answer *answer)
{
    struct agents *agents = context;
    struct agents_member *member = agents_rest_find(agents, node);
    agents->order = (struct agents_order){.node = node, .heard = clock_monotonic()};
    if (agents_rest_tell(member, line) && agents_rest_tell(member, "\n"))
        agents_rest_await(agents, member, shows, to);
    agents->order.node = NULL;
    *answer = agents->order.answer;
    member->is_lost = !agents->order.answered;
    return agents->order.answered ? 0 : -1;
}

struct owners agents_rest_owners(struct agents *agents)
{
    return (struct owners){agents, agents_rest_has, agents_rest_order};
}

void agents_rest_end(struct agents *agents)
{
    const uint64_t end = clock_monotonic() + REST_END * CLOCK_SECOND;
    agents_dismiss(agents);
    while (agents_any_lives(agents) && clock_monotonic() < end)
        agents_wait(agents, NULL, REST_LOOK);
}
