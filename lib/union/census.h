/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Whose are the mirrors that a marker names? Asked of a marker that was found in another directory than it
 * was written for. Their owner is the directory that has a marker of this id which was written for itself.
 *
 * Where there is none, since it is gone, a copy becomes it: the one that stands where its marker says, else
 * the one whose path comes first.
 *
 * The owner is looked for where the marker says that it was. If it is not there, it may have been moved: then
 * the root's directories are walked (not `.shunt`, no symbolic links, no other devices, at most CENSUS_MAX of
 * them), and where there are markers is remembered, since a restored tree asks for every directory it has.
 * Not so in a copy of a whole root, where no marker was written for the directory that it is in: there
 * whatever stands where its marker says is the owner. Thread-safe. */

#include <stdbool.h>

#include "union/listing.h"

#define CENSUS_MAX (1u << 20)

struct census;

/* NULL: no memory. */
struct census *census_create(void);
void census_destroy(struct census *);
/* Was the root walked? */
bool census_has_walked(const struct census *);

/* Is there an owner, or another copy that is to become it? `path` is where the marker was found. 1 or 0; -errno: it is not
 * known, since the file system failed to say what is somewhere. */
int census_holds_owner(const struct union_root *, const struct marker *, const char *path);
/* Between the two nobody else of this process becomes an owner. */
void census_lock(struct census *);
void census_unlock(struct census *);
