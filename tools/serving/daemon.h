/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Starting and stopping the daemon of a root. */

#include <limits.h>
#include <stdbool.h>

#include "cli/command.h"
#include "cli/roots.h"
#include "union/layout.h"

struct daemon_options {
    char node[LAYOUT_NODE_MAX + 1]; /* filled by daemon_node */
    const char *placement;          /* NULL: shuntd's own default */
    const char *leaf_full;          /* likewise */
    bool takeover;                  /* of a session that is silent, whatever a batch system says of its job */
    bool settled;                   /* somebody has taken over what was to be taken over */
    bool alone;                     /* a session that nobody joins */
    bool orphans_told;              /* somebody has looked for orphans already */
};

/* The name that was given; without one $SHUNT_NODE, $SLURMD_NODENAME, and then the host's. 0, or -1 after a complaint. */
int daemon_node(struct daemon_options *, const char *given);
/* What shuntd would refuse only when it starts: 0, or -1 after a complaint about the subcommand's use. */
int daemon_take_placement(const struct command *, const char *text, const char **placement);
int daemon_take_leaf_full(const struct command *, const char *text, const char **leaf_full);

/* Returns when all serve. 0; -1 after a complaint, or when a signal came that the caller catches (stopping.h), and then none
 * that was started here serves any more. */
int daemon_start(const struct roots *, const struct daemon_options *);
/* The same for one root. */
int daemon_start_root(const char *root, const struct daemon_options *);
/* Returns when those of this host have ended, or the one that goes by the name `node` if that is not NULL. 0,
 * also if there is none; 1: there is none, nor was there ever; -1 after a complaint. */
int daemon_stop(const char *root, const char *node);
/* Ends the session of each root: asks a daemon of this host to tell all of its session, wherever they run, and returns
 * when they have ended. 0, also if there is no session; -1 after a complaint, as of one that was never served. */
int daemon_stop_everywhere(const struct roots *);
/* Every one of them, whatever happens to the others. 0 or -1. */
int daemon_stop_all(const struct roots *, size_t count, const char *node);
/* ... and one that was never served is complained of. */
int daemon_stop_served(const struct roots *, const char *node);
