/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What Slurm's plugin (tools/spank) has done for a step, always as its user, by hidden commands.
 *
 * STEP_BEGIN, once, before the step starts: takes over what killed jobs left.
 *
 * STEP_KEEP, on each node: an agent (agent.h) that signals to the whole step do not end. With --job it also begins, and exports
 * once its daemons have stopped if standard input had STEP_EXPORT before its end; --export says when, as of shunt-launch.
 *
 * STEP_END, once, when all agents have stopped: exports what no surrounding session serves; --export likewise. */

#include "cli/command.h"

#define STEP_BEGIN "--begin-step"
#define STEP_KEEP "--keep-step"
#define STEP_END "--end-step"
#define STEP_EXPORT "export\n"
#define STEP_OFF "off"

extern const struct choice plugin_step_choices[], plugin_step_keep_choices[];
int plugin_step_begin(const struct command *, int argc, char **argv);
int plugin_step_keep(const struct command *, int argc, char **argv);
int plugin_step_end(const struct command *, int argc, char **argv);
