/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Daemons that no session names: the directory that was at a root's path was removed, or renamed, and they have not seen it
 * yet; or they are just about to begin or to end. */

#include <stdbool.h>
#include <sys/types.h>

/* Is that process a shuntd which was told to serve that path, as that node if it is not NULL? */
bool leftover_serves(pid_t, const char *root, const char *node);
/* Calls for each of this user's on this host that was started for that path, and node if that is not NULL, with its process
 * (the supervisor, if there is one) and its run directory. How many there were; those for which the call gave -1 make it -1. */
int leftover_each(const char *root, const char *node, int (*each)(void *context, pid_t pid, const char *run_dir),
                  void *context);
