/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Which root a directory lies under. Its identity tells, which the index knows; of a directory that it does not know the kernel
 * tells the place, once, and it is loaded. Async-signal-safe, thread-safe. */

#include <errno.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names/names.h"
#include "shim/scratch.h"

/* The mount that a statx with STATX_MNT_ID tells, or 0. */
static inline uint64_t mount_of(const struct statx *stat)
{
    return stat->stx_mask & STATX_MNT_ID ? stat->stx_mnt_id : 0;
}

/* Was its directory's record found, and have all its names been read? */
static inline bool root_of_is_loaded(const struct view_found *found)
{
    return found->dir_known && (found->dir.flags & RECORD_LOADED);
}

/* The type and identity of what may be below that root, without following a link at the end. 0 or -errno. */
int root_of_stat(const struct names_root *, int at, const char *path, struct statx *);
/* The identity of (at, path): its inode number, birth, type and mode, and the mount. 0 or -errno. */
int root_of_identify(int at, const char *path, int flags, struct statx *);
/* The same, into scratch->end.seen, and scratch->seen says it. */
int root_of_see(struct scratch *, int at, const char *path, int flags);
/* The kernel has answered a look at (at, path), a directory, with `code`. What that says of the path the native call is told,
 * too: 0. But a filter of system calls may have refused the look alone: -EIO if the path then leads to or beneath a root, else
 * 0. And the file system may have failed, or memory: that says nothing of where the path leads, and the next call may succeed:
 * `code`. Uses scratch->real. */
int root_of_unseen(struct scratch *, int at, const char *path, int code);
/* Has an open directory loaded whose place is beneath that root; where it, or one above it, is renamed before its coordinator
 * has looked, it is told where it is by then. `is_misplaced`: names_load_misplaced. 1; 0: it is not beneath; or -errno. `text`
 * has PATH_MAX bytes. */
int root_of_load(struct names_root *, int fd, struct dirid, char *text, bool is_misplaced);
/* Loads the directory (at, path), whose identity is known, into the root that its place is under. 1 and *to is set; 0: it is
 * under none, or is not there; another positive answer: the root is plain (names_is_plain); or -errno. Uses scratch->real. */
int root_of_place(struct scratch *, int at, const char *path, uint64_t device, struct dirid, struct names_root **to);
/* The directory's record and the name's are looked up: 1 and *root and *found are set, 0: it lies under none, or -errno. */
int root_of(struct scratch *, int at, const char *path, uint64_t device, struct dirid, const char *name, size_t length,
            struct names_root **root, struct view_found *found);
/* The same of any directory (at, path with flags of statx), without a name: *id is set, too. Nothing is asked of the file
 * system if no root is on its device. `found` may be NULL. */
int root_of_directory(int at, const char *path, int flags, struct names_root **root, struct dirid *id,
                      struct view_found *found);
