/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The agents of all nodes, and the commands that bring them there. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cli/signal_wait.h"
#include "launch/agent.h"
#include "launch/arguments.h"
#include "launch/nodes.h"
#include "leaving/owner.h"
#include "union/layout.h"

enum agents_means { AGENTS_SSH = 0, AGENTS_SRUN, AGENTS_OPENMPI, AGENTS_HYDRA };

struct agents_plan {
    enum agents_means means;
    const struct line *line;      /* of whose launcher's the options are that reach other hosts */
    const struct arguments *keep; /* the agent's command */
    bool pretend;                 /* all nodes are pretended ones of this host */
    bool helps;                   /* the agents start no daemons, and go without those that are not reached */
    const struct arguments *here; /* the command of this host's agents; NULL: that of the others */
};

/* One command: it brings agents to `count` nodes from `first` on. */
struct agents_member {
    struct arguments words;
    size_t first, count, served, stopped;
    size_t stuck; /* nodes whose daemons did not end */
    bool is_here; /* of this host, and not a pretended node */
    bool is_lost; /* its nodes are not told anything any more */
    pid_t pid;    /* 0: not started, or over */
    int to, from; /* pipes; -1: closed */
    size_t length;
    char text[512]; /* what it said of the line that is not over */
};

/* A node by the name that its agent told. */
struct agents_node {
    char name[LAYOUT_NODE_MAX + 1];
    struct agents_member *member;
    enum owner_state state; /* as an owner (agents_rest.h) */
    struct owner_answer answer;
    uint64_t heard; /* when it said something of its order, or got it */
};

struct agents {
    const struct nodes *nodes;
    size_t count;
    struct agents_member *members;
    bool *serves;              /* of each node */
    struct agents_node *named; /* those that serve */
    bool helps;                /* as that of the plan */
    size_t named_count;
    struct agent_counts counts; /* of the nodes that told */
    bool failed, dismissed;     /* something went wrong; all were told to end */
};

/* Pure: adds the command that brings agents to the nodes from `first` on, on other hosts. */
void agents_compose(const struct agents_plan *, const struct nodes *, size_t first, size_t count, struct arguments *to);

/* The commands for all nodes: one for each of this host, one for each or for all of the others, as the means
 * allow. 0, or -1 after a complaint. */
int agents_init(struct agents *, const struct nodes *, const struct agents_plan *);
void agents_finish(struct agents *);

/* The node that goes by that name; NULL: none has told it. */
struct agents_node *agents_find_node(const struct agents *, const char *name);

/* Starts all at once. 0 when all serve; -1 after a complaint, or the number of a signal that came: then some
 * may serve. */
int agents_start(struct agents *, struct signal_wait *);
/* The same of those that help: returns when each node serves, or is not reached, which is said. 0, or the number of a signal.
 */
int agents_start_helpers(struct agents *, struct signal_wait *);
/* As signal_wait_next, with an eye on the agents. Without signal_wait (NULL) it is 0. */
int agents_wait(struct agents *, struct signal_wait *, int milliseconds);
/* Tells all to stop, waits for their end. 0: every daemon that served has ended in order; -1 after a
 * complaint. A signal meanwhile is the number of it: they go on to stop by themselves. */
int agents_stop(struct agents *, struct signal_wait *);

/* All are told to end, which is not waited for. */
void agents_dismiss(struct agents *);
bool agents_any_lives(const struct agents *);
/* What agents_stop answers when nothing is waited for any more. */
int agents_complain_unstopped(const struct agents *);
