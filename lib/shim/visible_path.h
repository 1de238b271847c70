/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the kernel says of an open file's place, as the application knows it: of one in a branch it tells the
 * real place, of which the application has never heard.
 *
 * The place is mapped back where the directory that the mirror belongs to is known and is still where it was
 * last seen; else it is left as it is. Async-signal-safe, thread-safe; errno is not touched. */

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* Is it a link of /proc? What the kernel follows such a link to need not be what its text names. */
bool visible_path_is_of_proc(int at, const char *path);
/* After a readlink of (at, path) whose answer was `length` and is in `buffer`: if what was read is a link of
 * /proc, the buffer is written again. What the readlink should have answered. */
ssize_t visible_path_link(int at, const char *path, char *buffer, size_t size, ssize_t length);
/* The same for a canonical path: true if `path` was written again. It takes more room then. */
bool visible_path_path(char path[PATH_MAX]);
/* The directory that a mirror belongs to, as an absolute path. False: it is not known in this session, or is not there. */
struct names_root;
bool visible_path_of_mirror(struct names_root *, const char *mirror, char to[PATH_MAX]);
