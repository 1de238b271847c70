/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What tells a directory from another one that had its inode number before it: its time of birth. ext4 with inodes of 128
 * bytes, OCFS2, GFS2, NFS and tmpfs before Linux 5.18 keep none, and use a number again at once; there a directory's file
 * handle (name_to_handle_at(2)) tells, which has a generation in it, is the same on all nodes and asks no server. Which of the
 * two a file system has, or neither, is seen from the identity of the root.
 *
 * Callable anywhere, async-signal-safe; allocates nothing and shares no state. */

#include "index/record.h"

#define IDENTITY_MASK (STATX_TYPE | STATX_INO | STATX_BTIME)

/* As statx(2) with IDENTITY_MASK, of what is below a root or is it, for dirid_of: in a root without
 * times of birth stx_btime of a directory is made of its handle, and of no other use. That is one system call more; if the path
 * leads elsewhere between the two, or the second is refused, the identity is that of no directory. */
int identity_stat(struct dirid root, int at, const char *path, int flags, struct statx *);

/* The same of an open directory that is, or is to be, a root. */
int identity_stat_root(int directory, struct statx *);

/* After a statx of a directory that told no time of birth. */
void identity_add_handle(int at, const char *path, int flags, struct statx *);
