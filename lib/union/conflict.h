/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One name in several places: which file keeps it. The rules stand at listing_init. Blocking; thread-safe, one listing by one
 * thread at a time; not for signal handlers (it allocates). */

#include "union/listing.h"

struct conflict_scene {
    struct listing *listing; /* its names sorted by name, then branch, then leaf; still with doubles */
    const struct union_root *root;
    int directory;  /* of the trunk; may be O_PATH */
    unsigned flags; /* LISTING_SETTLE */
};

/* Afterwards every name stands once, and all are sorted. 0; -ECANCELED as in listing_init; another -errno: it is not known
 * which file keeps its name, and what was decided before is settled. */
int conflict_settle(const struct conflict_scene *);

/* What a loser is called: NAME.shunt-conflict-NODE and, from the second attempt on, a dot and its number. The name is cut where
 * all would be too long. */
void conflict_make_name(char to[RECORD_NAME_MAX + 1], const char *name, const char *node, size_t node_length, unsigned attempt);

/* Memory that lives as long as the listing. NULL: none. */
char *listing_keep(struct listing *, const char *name, size_t length);
