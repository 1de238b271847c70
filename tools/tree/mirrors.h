/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Every mirror that is on disk, and which of them belong to no directory. */

#include "union/listing.h"

/* The mirrors that some directory's marker names. */
struct mirror_names {
    size_t count, room;
    char (*names)[RECORD_MIRROR_MAX];
};

/* 0 or -ENOMEM. */
int mirror_names_add(struct mirror_names *, const char *mirror);
void mirror_names_finish(struct mirror_names *);
/* Before the first mirror_names_have. */
void mirror_names_sort(struct mirror_names *);
bool mirror_names_have(const struct mirror_names *, const char *mirror);

struct mirror_found {
    uint16_t branch;         /* as in a union_name */
    char name[NAME_MAX + 1]; /* in the branch */
    bool foreign;            /* no mirror of shunt's: not its kind of name, or no directory */
    bool known;              /* a marker names it; if not, it is an orphan */
    size_t files;            /* all that is in it, but leaves and unfinished leaves */
    size_t unfinished;       /* leaves whose making was cut short */
};

struct mirrors {
    size_t count, room;
    struct mirror_found *all;
    char unread[LAYOUT_BRANCH_MAX + 1 + NAME_MAX + 1]; /* BRANCH or BRANCH/MIRROR: the first that could not be read */
};

/* `known` is sorted. 0 or -errno; what could be read is there also on failure. */
int mirrors_init(struct mirrors *, const struct union_root *, struct mirror_names *known);
void mirrors_finish(struct mirrors *);

/* What is in the place of a branch, or with `in_branches` of a mirror, and may hold its files, which nobody sees: a symbolic
 * link, or a directory of another name. 1 and BRANCH or BRANCH/MIRROR, as it is called now; 0: there is none; -errno. */
#define MIRRORS_STRAY_MAX (2 * NAME_MAX + 2)
int mirrors_find_stray(const struct union_root *, bool in_branches, char stray[MIRRORS_STRAY_MAX]);
/* What it is in the place of: "branch" or "mirror". */
const char *mirrors_stray_kind(const char *stray);

/* ROOT/.shunt/b/BRANCH. 0 or -ENAMETOOLONG. */
int mirrors_branch_path(const struct union_root *, uint16_t branch, char *to, size_t size);
/* An open descriptor of a mirror, or -errno. */
int mirrors_open(const struct union_root *, const struct mirror_found *);
/* Is it what mirror_make calls a leaf that it is not done with? */
bool mirrors_is_unfinished(const char *leaf);

/* Calls `each` with every name in every leaf of a mirror, until it answers other than 0; its answer, 0 or
 * -errno. */
typedef int mirrors_each(int leaf, const char *name, void *argument);
int mirrors_files(int mirror, mirrors_each *each, void *argument);
