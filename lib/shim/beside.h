/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Does a directory lie beside all roots? By what the kernel says of it, each time; nothing is remembered. It takes little
 * stack, unlike the search for the root that a directory does lie under (root_of.h). Async-signal-safe, thread-safe. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/prefilter.h"
#include "shim/scratch.h"

bool beside_is_on_a_root_device(uint64_t device);
/* Are all roots on that device seen by that mount? By one mount, one directory has one path. Uses scratch->end.seen. */
bool beside_is_mount_of_roots(struct scratch *, uint64_t device, uint64_t mount);
/* Is the path that the kernel has of an open directory, by the mount of the roots, beside them? Uses scratch->real. */
bool beside_has_place(struct scratch *, int fd);
/* Does the index of a root know the directory? */
bool beside_is_known(const struct scratch_seen *);
/* Is its place beside the roots? It is opened at (at, path) with `flags` of openat next to O_PATH; an empty path is `at`
 * itself. */
bool beside_is_placed(struct scratch *, int at, const char *path, int flags);
/* Is it on no root's device, or does the index of none know it, and its place is beside them? False says nothing; it is the
 * answer wherever a root is hidden. */
static inline bool beside_is_directory(struct scratch *s, int at, const char *path, int flags)
{
    return !prefilter_some_is_hidden() && (!beside_is_on_a_root_device(s->seen.device) ||
                                           (!beside_is_known(&s->seen) && beside_is_placed(s, at, path, flags)));
}
