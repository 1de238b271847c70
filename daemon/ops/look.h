/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What lies at an entry's place. The index of all nodes follows from it, so what this node's kernel remembers of a name is no
 * answer: an NFS client goes by names of another time, and any kernel finds nothing in a directory that is somewhere else. */

#include "shuntd.h"

struct home_dir;
struct record_entry;

/* 0, and stat has type, inode number and birth. -ENOENT: it was looked for in the right directory, and is not there. -ESTALE:
 * the directory is not where it was last seen. Another -errno: nobody knows. */
int look_at_entry(const struct shuntd *, const struct home_dir *, const struct record_entry *, const char *name, size_t length,
                  struct statx *stat);
/* A name came or went, on whichever node: this one's kernel is to look it up again. `path`: of the name, relative to the root.
 */
void look_refresh_parent(const struct shuntd *, const char *path);
