/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One node of a step: its daemons, which belong to the step as its tasks do (cgroup, limits, user). A task's process starts
 * them before it becomes the program; slurmstepd, which is root, does no more than hold the other end of a socket: when that is
 * shut, or slurmstepd ends, they stop. */

#include "spank/tool.h"

struct node {
    int here, there; /* a socket: slurmstepd's end, the agent's; -1 */
    int ready, off;  /* eventfds: the first task has done what it can; ... and the site has turned shunt off; -1 */
};

/* In slurmstepd before there are tasks: 0 or -1. */
int node_init(struct node *);
/* In slurmstepd when there are: the agent's end is theirs alone. */
void node_has_forked(struct node *);
/* In the first task of the node: returns when the daemons serve, or cannot, and the others go on: 0; 1: the site has turned
 * shunt off; -1 after a complaint. */
int node_start(struct node *, const struct tool *keep);
/* In another task: until the first one is ready, however that went. 1: the site has turned shunt off. */
int node_await_start(struct node *);
/* In slurmstepd when the last task has ended: returns when the daemons have, and have exported if they are to do that. */
void node_stop(struct node *, int exports);
