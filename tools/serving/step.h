/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Slurm's steps: when the tasks of one have ended, all processes that came of them are ended, wherever they went. */

#include <stdbool.h>

#include "cli/roots.h"

/* Is this process the task of a step of srun whose processes Slurm finds by cgroups? Not so what a task runs, as a shell. */
bool step_is_mine(void);
/* Is one of srun in this /proc/PID/cgroup? Those of batch scripts and of salloc's shells have no number. Pure. */
bool step_is_tracked(const char *cgroups);
/* Stays until the daemons, which became children of this process by kept_adopt, have ended; SIGINT ends them, SIGTERM and
 * SIGHUP do so after KEPT_GRACE. The status of the command. */
int step_stay(const struct roots *, const char *node);
