/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The daemons of this host that a program would go to. */

#include <stdbool.h>
#include <stdint.h>

#include "cli/roots.h"
#include "serving/daemon.h"

/* The node by whose daemon all of these roots are served on this host: `given`, or else $SHUNT_NODE, or Slurm's or the host's
 * name, or the name of the one daemon that there is. 0, also if there is none; STATUS_USAGE or LAUNCH_NO_SHIM, after a
 * complaint. */
int reach_node(const struct roots *, struct daemon_options *, const char *given);
/* The same, after a while in which daemons may be started: at most that long. */
int reach_node_within(const struct roots *, struct daemon_options *, const char *given, uint64_t seconds);
/* Are all roots of $SHUNT_ROOT served under the name $SHUNT_NODE? False: after a complaint. */
bool reach_prove(void);
