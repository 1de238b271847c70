/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Does a path lead to nothing of a root? A quick answer for paths whose text is foreign: of a name that the kernel did not
 * find, and of one that is to be made, removed or replaced. Its parent, or what of it is there, must lie under no root, and no
 * link be where its first missing part would be. The kernel is asked each time; nothing is remembered, since a link can be made
 * at any time by any process.
 *
 * Takes little stack, unlike the search for what a path does lead to (target.h). Async-signal-safe, thread-safe. */

#include <stdbool.h>

/* `want`: enum target_want. False says nothing. */
bool dead_end(int at, const char *path, unsigned want);
/* The same of a directory that is open, to which the foreign words `path` have led: by its place. */
bool dead_end_is_beside_roots(int fd, const char *path);
