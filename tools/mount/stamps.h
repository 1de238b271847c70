/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The times of all physical directories that have names of one directory of a union: its own, those of its mirrors and leaves,
 * and that of the branches. As long as they stay, so do the names; lib/catalogue/FORMAT.md says from when on. Not thread-safe.
 */

#include <stdbool.h>
#include <stddef.h>

#include "catalogue/stamp.h"
#include "union/listing.h"

struct stamps {
    struct catalogue_stamp *all;
    size_t count, room;
};

/* Those of now. `directory` is open, also O_PATH. 1; 0: the times of this file system prove nothing; -errno. stamps_finish in
 * any case. */
int stamps_take(struct stamps *, const struct union_root *, int directory);
bool stamps_equal(const struct stamps *, const struct stamps *);
void stamps_finish(struct stamps *);
