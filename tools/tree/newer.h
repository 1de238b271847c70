/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Which names lie in a directory that was modified after some file was: in the trunk directory, or in the leaf. A stat
 * for each directory and each leaf, none for a name. Allocates; not for several threads. */

#include "api/folder.h"

struct newer {
    bool asked; /* newer_add was called */
    struct statx_timestamp than;
    bool trunk;   /* the directory that was entered last is newer */
    void *leaves; /* those of it that were asked about, a tree of tsearch(3) */
};

/* Takes the time of a file in or outside of a root, links followed; of several files the latest counts. 0 or -errno. */
int newer_add(struct newer *, const char *path);
/* The names asked about from now on are of this directory. */
void newer_enter(struct newer *, const struct statx *directory);
/* One of its names: 1, 0, or -errno where the leaf's time cannot be read; of other names of that leaf 0 then. */
int newer_name(struct newer *, const struct folder *, const struct union_root *, const struct union_name *);
/* The directory at `path` (relative to the root) lies in the one above it, which may be outside of the root: 1, 0 or
 * -errno. */
int newer_directory(const struct newer *, int root_fd, const char *path);
void newer_finish(struct newer *);
