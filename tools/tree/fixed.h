/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Why something of shunt's cannot be changed (EPERM): it, or a directory that it is in, is immutable or append-only
 * (chattr(1)), for the superuser, too. */

#include <limits.h>
#include <stdbool.h>

/* The first of `path`, which is `root` or below it, and the directories above it, up to the root. */
bool fixed_find(const char *root, const char *path, char fixed[PATH_MAX]);
/* The first of a directory of shunt's own and all that is in it. */
bool fixed_find_below(const char *path, char fixed[PATH_MAX]);
/* Says so, and the remedy. */
void fixed_complain(const char *fixed);
