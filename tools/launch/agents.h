/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The keepers of all nodes, and the commands that bring them there. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "launch/nodes.h"
#include "launch/watch.h"
#include "launch/arguments.h"

enum crew_means { CREW_SSH = 0, CREW_SRUN, CREW_OPENMPI, CREW_HYDRA };

struct crew_plan {
    enum crew_means means;
    const struct line *line;  /* of whose launcher's the options are that reach other hosts */
    const struct words *keep; /* the keeper's command */
    bool pretend;             /* all nodes are pretended ones of this host */
};

/* One command: it brings keepers to `count` nodes from `first` on. */
struct crew_member {
    struct words words;
    size_t first, count, served, stopped;
    pid_t pid;    /* 0: not started, or over */
    int to, from; /* pipes; -1: closed */
    size_t length;
    char text[512]; /* what it said of the line that is not over */
};

struct crew {
    const struct nodes *nodes;
    size_t count;
    struct crew_member *members;
    bool *serves;                 /* of each node */
    bool failed, told, dismissed; /* something went wrong; that was said; all were told to end */
};

/* Pure: adds the command that brings keepers to the nodes from `first` on, on other hosts. */
void crew_compose(const struct crew_plan *, const struct nodes *, size_t first, size_t count, struct words *to);

/* The commands for all nodes: one for each of this host, one for each or for all of the others, as the means
 * allow. 0, or -1 after a complaint. */
int crew_init(struct crew *, const struct nodes *, const struct crew_plan *);
void crew_finish(struct crew *);

/* Starts all at once. 0 when all serve; -1 after a complaint, or the number of a signal that came: then some
 * may serve. */
int crew_start(struct crew *, struct watch *);
/* As watch_wait, with an eye on the crew. */
int crew_wait(struct crew *, struct watch *, int milliseconds);
/* Tells all to stop, waits for their end. 0: every daemon that served has ended in order; -1 after a
 * complaint. A signal meanwhile is the number of it: they go on to stop by themselves. */
int crew_stop(struct crew *, struct watch *);
