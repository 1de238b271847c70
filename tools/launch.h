/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Bringing a command under the shim: its environment, and the proof that the shim gets loaded.
 *
 * The tool executes itself under the shim, as the hidden verb LAUNCH_PROVE. That looks for the shim in its
 * own memory map and only then executes the command: by then through the shim, which finds commands in a
 * branch, too. */

#include "roots.h"

#define LAUNCH_PROVE "prove"
enum { LAUNCH_NO_SHIM = 125, LAUNCH_NOT_EXECUTABLE = 126, LAUNCH_NOT_FOUND = 127 };

/* Replaces this process. Returns only on failure: LAUNCH_NO_SHIM, after a complaint. */
int launch_exec(const struct roots *, const char *node, char **command);

/* Takes the shim out of this process's LD_PRELOAD. */
void launch_without_shim(void);
