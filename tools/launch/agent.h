/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One for each node: starts the daemons of its roots, stops them in order when its standard input ends, and
 * lives in between. The launch is on the other end of that pipe, so when it ends, however it ends, the
 * daemons do too. After the line AGENT_REST they stop, and it waits for the orders of an export that begins then (owner.h),
 * until that end. With AGENT_HELPS it starts no daemon, and waits for such orders from the beginning.
 *
 * It tells how it goes on standard output, a line each: AGENT_WORD, the node's name, and one of the words
 * below. Its own exit status is 0, since launchers kill the others when one fails. */

#include <stdint.h>

#include "cli/command.h"

#define AGENT "--keep-node"
#define AGENT_QUIET "quiet"
#define AGENT_HELPS "helps"
#define AGENT_OUTER "outer"
#define AGENT_WORD "shunt-node"
#define AGENT_SERVES "serves"
#define AGENT_FAILED "failed"   /* the reason is on standard error; nothing of this node serves */
#define AGENT_DIED "died"       /* a daemon ended that nobody had told to */
#define AGENT_COUNTED "counted" /* with operations, redirected files and ms waited of its daemons, before these stop */
#define AGENT_STOPPED "stopped"
#define AGENT_STUCK "stuck" /* a daemon did not end */
#define AGENT_REST "rest"
#define AGENT_MOVING "moving" /* with the files that were renamed so far, now and then */
#define AGENT_MOVED "moved"   /* an order was carried out: with files, and those looked at */

/* Of the daemons of a node, or of all. */
struct agent_counts {
    uint64_t operations; /* creates, unlinks and renames */
    uint64_t redirected, waited_ms;
};

extern const struct choice agent_choices[];
int agent(const struct command *, int argc, char **argv);
