/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One of the two paths of a rename or a link: a target under a root, or a path outside all roots, of which nothing but its text
 * is known. Texts are written to a caller's buffer of PATH_MAX bytes. Async-signal-safe and thread-safe. */

#include "shim/operations.h"

void side_done(struct side *);

/* After TARGET_RETRY (target.h): follows the path of a managed side again, if it leads elsewhere. `code`, SIDE_FOREIGN: it is
 * not ours any more; or -errno. */
#define SIDE_FOREIGN (-4098)
int side_follow_again(struct side *, int code);

/* Of a path outside: 0 if its parent is there, or what the kernel's filename_parentat answers: -EFAULT and -ENOENT for its
 * words, -ENAMETOOLONG for a path of PATH_MAX bytes, else the error of the parent. What it ends in plays no part yet. */
int side_parent_outside(const struct side *);
/* Does a path outside end in `.`, `..` or a slash that is all of it? The kernel's last_type != LAST_NORM. */
bool side_ends_in_dots(const struct side *);
/* Stats what lies outside under that name (type, inode, birth time), without the slash after it, which is told apart: rename
 * does not follow a link there. 0 or -errno. */
int side_stat_outside(const struct side *, char *text, bool *slash, struct statx *);

/* Are both reached through mounts, and different ones? Between two mounts of one file system (a bind mount) the kernel renames
 * and links nothing, although the places in a branch, which are reached by their full path, would let it. */
bool side_are_across(const struct side *from, const struct side *to);
/* May the caller make and remove names in its parent? */
bool side_parent_is_writable(struct side *, char *text);
/* Is its parent on a file system or a mount that is read-only? */
bool side_parent_is_read_only(const struct side *, char *text);
/* A rename of the file system between names that are held ended with `code`. -ENOENT: one of them was not where it was thought
 * to be; if it is elsewhere now, TARGET_RETRY. `from` or `to` may be NULL. */
int side_missed(struct target *from, struct target *to, long code);
