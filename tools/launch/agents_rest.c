/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/agents_rest.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define REST_STOP 10    /* seconds without another daemon that has stopped: then no agent rests */
#define REST_END 90     /* seconds for agents to end */
#define REST_SILENCE 60 /* after which a node is given up that says no more how far it is */
#define REST_LOOK 200   /* ms between two looks at those that end */

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

static int agents_rest_find(void *context, const char *name)
{
    const struct agents *agents = context;
    const struct agents_node *node = agents_find_node(agents, name);
    return node != NULL && !node->member->is_here ? (int)(node - agents->named) : -1;
}

/* One that says nothing for long is given up. */
static enum owner_state agents_rest_state(void *context, int owner, struct owner_answer *answer)
{
    const struct agents *agents = context;
    struct agents_node *node = &agents->named[owner];
    const bool is_there = node->member->pid > 0 && !node->member->is_lost;
    if (node->state == OWNER_WORKS && (!is_there || clock_monotonic() >= node->heard + REST_SILENCE * CLOCK_SECOND)) {
        node->state = OWNER_LOST;
        node->answer = (struct owner_answer){0};
    }
    *answer = node->answer;
    return node->state == OWNER_FREE && !is_there ? OWNER_LOST : node->state;
}

static bool agents_rest_order(void *context, int owner, const char *line)
{
    const struct agents *agents = context;
    struct agents_node *node = &agents->named[owner];
    struct agents_member *member = node->member;
    node->answer = (struct owner_answer){0};
    node->heard = clock_monotonic();
    member->is_lost |= member->pid <= 0 || !agents_rest_tell(member, line) || !agents_rest_tell(member, "\n");
    node->state = member->is_lost ? OWNER_LOST : OWNER_WORKS;
    return !member->is_lost;
}

static void agents_rest_wait(void *context, int milliseconds)
{
    agents_wait(context, NULL, milliseconds);
}

static void agents_rest_dismiss(void *context)
{
    agents_dismiss(context);
}

struct owners agents_rest_owners(struct agents *agents)
{
    return (struct owners){agents,           agents_rest_find,   agents_rest_state, agents_rest_order,
                           agents_rest_wait, agents_rest_dismiss};
}

void agents_rest_end(struct agents *agents)
{
    const uint64_t end = clock_monotonic() + REST_END * CLOCK_SECOND;
    agents_dismiss(agents);
    while (agents_any_lives(agents) && clock_monotonic() < end)
        agents_wait(agents, NULL, REST_LOOK);
}
