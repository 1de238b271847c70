/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* By which path a root is seen in this mount namespace. Async-signal-safe. */

#include "names/names.h"

/* Does that path lead to the root, whose identity is known, and from there to its branches? */
bool visible_is_at(const struct names_root *, const char *path);
/* Looks for one among the mounts: NAMES_SEEN, and `to` is the path; else how much of it is there. */
enum names_sight visible_find(const struct names_root *, char to[PATH_MAX]);
/* Does an absolute path lead to something through the root? Then `to` is the path of that. */
bool visible_find_above(const struct names_root *, const char *path, char to[PATH_MAX]);
