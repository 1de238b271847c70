/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Is the root still where it was? A daemon is told nothing when its root is removed or renamed, or its file system unmounted,
 * natively. So it looks now and then, with one statx; once the directory was seen twice in a row not to be there, the daemon
 * ends (shuntd->root_gone): whatever is at that path now is not its own. */

#include "shuntd.h"

/* In each batch. 0 or a fatal -errno. */
int root_watch_step(struct shuntd *);
/* When it is to look next, monotonic. */
uint64_t root_watch_due(const struct shuntd *);
/* Looks once, from any thread. */
bool root_watch_misses(const struct shuntd *);
/* Says it. Also of a daemon that is started again. */
void root_watch_tell(struct shuntd *);
