/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "spank/node.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch/agent.h"
#include "launch/plugin_step.h"

#define START_PATIENCE 180 /* seconds; a root whose session is dead may have to be watched first */
#define STOP_PATIENCE 90   /* more than an agent's own */
#define EXPORT_PATIENCE (4 * 3600)

static void node_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int node_init(struct node *node)
{
    int ends[2];
    *node = (struct node){-1, -1, eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC)};
    if (node->ready < 0 || node->off < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        node_close(&node->ready);
        node_close(&node->off);
        return -1;
    }
    node->here = ends[0];
    node->there = ends[1];
    return 0;
}

void node_has_forked(struct node *node)
{
    node_close(&node->there);
}

/* Not a child of the task, which may wait for all that it has, and not of its group, which a terminal's ^C ends. */
static int node_fork_agent(struct node *node, const struct tool *keep)
{
    const pid_t child = fork();
    if (child == 0) {
        if (setsid() < 0 || fork() != 0)
            _exit(0);
        tool_become(keep, node->there, 1);
        _exit(127);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    node_close(&node->there);
    return child < 0 ? -1 : 0;
}

static long node_seconds(void)
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now); /* libc's may be another library's (base/clock.h) */
    return now.tv_sec;
}

/* A byte; 0 at the end of the agent, -1 when the time is over. */
static int node_read_byte(const struct node *node, long end, char *byte)
{
    struct pollfd input = {.fd = node->here, .events = POLLIN};
    for (;;) {
        const long left = end - node_seconds();
        if (left <= 0)
            return -1;
        if (poll(&input, 1, (int)left * 1000) <= 0)
            continue;
        const ssize_t length = recv(node->here, byte, 1, 0);
        if (length >= 0 || errno != EINTR)
            return length > 0;
    }
}

/* Until it says how it goes, in a line: as node_start. */
static int node_hear(const struct node *node)
{
    char line[256], word[16];
    const long end = node_seconds() + START_PATIENCE;
    for (size_t length = 0; length + 1 < sizeof line; length++) {
        if (node_read_byte(node, end, line + length) <= 0)
            return -1;
        if (line[length] != '\n')
            continue;
        line[length] = '\0';
        if (sscanf(line, AGENT_WORD " %*s %15s", word) != 1)
            return -1;
        return !strcmp(word, AGENT_SERVES) ? 0 : !strcmp(word, STEP_OFF) ? 1 : -1;
    }
    return -1;
}

int node_start(struct node *node, const struct tool *keep)
{
    const int heard = node_fork_agent(node, keep) < 0 ? -1 : node_hear(node);
    if (heard > 0)
        eventfd_write(node->off, 1);
    eventfd_write(node->ready, 1);
    return heard;
}

static int node_is_set(int event, int milliseconds)
{
    struct pollfd input = {.fd = event, .events = POLLIN};
    return poll(&input, 1, milliseconds) > 0;
}

/* Nothing is read, so that all see it. */
int node_await_start(struct node *node)
{
    const long end = node_seconds() + START_PATIENCE;
    node_close(&node->there);
    for (long left = START_PATIENCE; left > 0 && !node_is_set(node->ready, (int)left * 1000);)
        left = end - node_seconds();
    return node_is_set(node->off, 0);
}

/* What is read was written by the user's processes: it counts for nothing, and what they do about the socket's other end does
 * not hold up the end of a step for ever. */
void node_stop(struct node *node, int exports)
{
    char byte;
    if (node->here < 0)
        return;
    if (exports)
        send(node->here, STEP_EXPORT, sizeof STEP_EXPORT - 1, MSG_NOSIGNAL);
    shutdown(node->here, SHUT_WR);
    const long end = node_seconds() + (exports ? EXPORT_PATIENCE : STOP_PATIENCE);
    while (node_read_byte(node, end, &byte) > 0)
        continue;
    node_close(&node->here);
    node_close(&node->ready);
    node_close(&node->off);
}
