/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* How a path is shown: as the user spelled its beginning, and from there as it is below. */

#include <limits.h>
#include <stddef.h>

/* SPELLING/NAME, where "." and a directory's trailing slash are as ls and find have them. 0 or -ENAMETOOLONG.
 */
int visible_path_join(const char *spelling, const char *name, char *to, size_t size);
/* The path of what `path` (relative to the root) is, when `from` (likewise, at or above it) is spelled so. */
int visible_path_below(const char *spelling, const char *from, const char *path, char *to, size_t size);
