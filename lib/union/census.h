/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Where in the trunk does a directory of this identity stand? Asked of a marker that was found in another
 * directory than it was written for, when the one it was written for is not where the marker says.
 *
 * The first question walks the root's directories once (not `.shunt`, no symbolic links, no other devices, at
 * most CENSUS_MAX of them) and remembers their inode numbers and names; a restored tree asks for every
 * directory it has. Thread-safe. */

#include <stdbool.h>

#include "union/listing.h"

#define CENSUS_MAX (1u << 20)

struct census;

/* NULL: no memory. */
struct census *census_create(void);
void census_destroy(struct census *);

/* Does the directory that this marker was written for stand under the root, with a marker of the same id? */
bool census_holds_owner(const struct union_root *, const struct marker *);
/* The same, of one place only; `path` is relative to `root`. */
bool census_is_owner(int root, const char *path, const struct marker *);
