/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Looking into an index in place, from any process of the node: memory-mapped, no message, no lock, no
 * allocation.
 *
 * A view keeps no descriptor: LMDB's two are closed as soon as their files are mapped, so nothing that an
 * application does to its descriptors can reach them. Its memory comes from pages of its own, never from
 * malloc. Lookups are async-signal-safe, thread-safe, and safe in a vfork child (which shares its parent's
 * view). A fork child makes a view of its own out of the one that it inherited. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/index.h"

struct view;

/* 0; -ENOENT: no index there; -EBADMSG: damaged or of another format; -ESTALE: of another session or root;
 * -EMFILE: no reader slot is left; -ENOMEM; another -errno. Not to be interrupted by a handler that opens one
 * too: block signals. */
int view_open(struct view **, const char *directory, const struct index_stamp *expected);
/* In a fork child, with a view of the parent's: the same files, which stay mapped, with memory and reader
 * slots of the child's own. Opens nothing: it works with other credentials, another root directory, no
 * descriptor left. The inherited view is used up in any case. 0, -ENOMEM. */
int view_inherit(struct view **, struct view *inherited);
/* A view of the same index that maps more of it, after -EOVERFLOW. The old one stays mapped, since a thread may be in it.
 * Opens nothing, like view_inherit. 0, -ENOMEM. */
int view_grow(struct view **, const struct view *old);
/* Unmaps it; no thread may be in it. */
void view_abandon(struct view *);

struct view_found {
    bool dir_known;
    bool known;            /* the name is there; entry and branch are valid */
    struct record_dir dir; /* if dir_known */
    struct record_entry entry;
    char branch[LAYOUT_BRANCH_MAX]; /* where entry.branch says a branch; else empty */
    uint32_t gains;                 /* the road's, from before the look (names/names.h) */
};

/* One snapshot: the directory, the name in it (none is looked up if length is 0) and its branch. 0; -EMFILE: no reader
 * slot is left; -EOVERFLOW: the index has outgrown what is mapped of it, see view_grow; another -errno. */
int view_find(struct view *, struct dirid, const char *name, size_t length, struct view_found *);

/* The name of the branch of that word, among those that this index knows. 0, -ENOENT, or as view_find. */
int view_find_branch(struct view *, uint32_t word, char branch[LAYOUT_BRANCH_MAX]);

/* As index_list; one snapshot. -ENODATA: the directory is not loaded. `each` must not block. */
int view_list(struct view *, struct dirid, uint64_t from, index_each *each, void *context);
