/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Moving a file of a branch to the trunk. */

#include "shim/target.h"

/* Moves it to the trunk unless it is there; looks it up again. 0, TARGET_RETRY for target_follow_again, or -errno. */
int promote_target(struct target *);

/* Before a call that is made by the caller's own path, in the kernel or in libc, whatever it leads to: moves a file that is in
 * a branch to the trunk. `want`: TARGET_FOLLOW or 0. 0, or -errno: then the call is not to be made. A path that leads to
 * nothing is the call's to tell. Keeps errno. */
int promote_path(int at, const char *path, unsigned want);
/* What such a call that said ENOENT says: a file in a branch, which is not moved for being on the way, is ENOTDIR. */
int promote_error(int at, const char *path, unsigned want);
