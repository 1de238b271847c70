/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Making mirrors and leaves, and keeping them equal to their trunk directory in what files born there
 * inherit.
 *
 * Only shuntd calls this (and the tools that remove). Blocking; not for signal handlers; thread-safe. */

#include <stdint.h>

#include "index/record.h"

/* Makes leaf `leaf` of the mirror at BRANCH_PATH/MIRROR (and the mirror itself, if need be) for the trunk
 * directory `trunk` (a descriptor; may be O_PATH). A leaf is made under a temporary name with mode 0700, is
 * given the trunk directory's owner, group, ACLs (access and default), inheritable inode flags
 * (FS_IOC_GETFLAGS: append, nodump, noatime, sync, dirsync, nocow, compress, casefold, project inheritance)
 * and project id, user.* and trusted.* and security.* extended attributes that the caller may read (for
 * lustre.lov the default layout comes with xattr lustre.lov / trusted.lov on directories), its mode last, is
 * read back and compared, and only then renamed to its number. The mirror directory itself is made equal in
 * the same way.
 *
 * One bit may differ: the owner may always read and search a mirror and its leaves (mode | 0500), or its own
 * daemon could not list them again. A process that comes through the trunk is stopped there as its mode says.
 *
 * 0; a positive enum record_why if a leaf cannot be made equal (nothing is left after); -EEXIST if that leaf
 * is there already; another -errno. */
int mirror_make(int trunk, const char *branch_path, const char *mirror, uint32_t leaf);

/* Gives the mirror and all its leaves the trunk directory's present attributes. 0, a positive enum
 * record_why, or -errno; 0 if there is no such mirror. */
int mirror_follow(int trunk, const char *branch_path, const char *mirror);

/* fsync of the mirror's leaves; 0 or the first -errno; 0 if there is no such mirror. */
int mirror_sync(const char *branch_path, const char *mirror);

/* Removes the leaves and the mirror. 0, also if there is none; -ENOTEMPTY if any leaf holds something (leaves
 * that were empty may be gone then, the mirror stays). */
int mirror_remove(const char *branch_path, const char *mirror);
