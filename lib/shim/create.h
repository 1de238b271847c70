/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The create of a name at its home: reserved, then confirmed or withdrawn (target_withdraw). */

#include "shim/target.h"

/* Is it a name that a loader looks for by itself (libNAME.so, NAME.so.1)? Such files live in the trunk. */
bool create_is_for_loader(const char *name, size_t length);

/* 0: it is ours to make at real_at/real_path; TARGET_RETRY: there is one, and it is known now, or the path leads elsewhere
 * (target_follow_again); -errno.
 * `type` is the DT_ of what comes; flags: MESSAGE_TRUNK. */
int create_reserve(struct target *, uint8_t type, uint16_t flags);
/* Not waited for. stat: with type, inode number and birth time. */
void create_commit(struct target *, const struct statx *);
/* The same for what was there before: a directory is not known to be empty. */
void create_commit_found(struct target *, const struct statx *);
/* The same for what is there, which the kernel has said, and then failed to say which file it is: the daemon looks. `type`: its
 * DT_. */
void create_commit_unseen(struct target *, uint8_t type);
/* The same for what is at real_at/real_path by now, if that cannot be seen of that `type`. Nothing: it is withdrawn. */
void create_commit_there(struct target *, uint8_t type);
