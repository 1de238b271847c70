/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Moving a file of a branch to the trunk. */

#include "shim/target.h"
#include "union/disk.h"

/* Moves it to the trunk unless it is there; looks it up again. 0, TARGET_RETRY for target_follow_again, or -errno. */
int promote_target(struct target *);

/* Before a call that is made by the caller's own path, in the kernel or in libc, whatever it leads to: moves a file that is in
 * a branch to the trunk. `want`: TARGET_FOLLOW or 0. 0, or -errno: then the call is not to be made. A path that leads to
 * nothing is the call's to tell. Keeps errno. */
int promote_path(int at, const char *path, unsigned want);
/* What such a call that said ENOENT says: a file in a branch, which is not moved for being on the way, is ENOTDIR. */
int promote_error(int at, const char *path, unsigned want);

/* For a tool that empties branches while their files are used. */
struct promote_quiet {
    struct disk_rename renaming; /* of the file system; never by a link, which would leave two names if it were the last call */
    uint64_t quiet_since;        /* ns since 1970 */
    bool moved;                  /* the last one was */
};
#define PROMOTE_MOVED 1
#define PROMOTE_IN_USE 2 /* names in mirrors of its directory came or went since */
/* PROMOTE_MOVED: it is in the trunk from now on, under the same name; 0: it was not in a branch, or is there no more;
 * PROMOTE_IN_USE; or -errno. */
int promote_quiet(const char *path, struct promote_quiet *);
