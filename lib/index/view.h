/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Looking into an index in place, from any process of the node: memory-mapped, no message, no lock, no
 * allocation, no system call.
 *
 * A view keeps no descriptor: its file's is closed as soon as it is mapped, so nothing that an application does to its
 * descriptors can reach it. Nor does its writer know of it. Lookups are async-signal-safe, thread-safe, and safe in fork and
 * vfork children, which go on with their parent's view. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/index.h"

struct view;

/* 0; -ENOENT: no index there; -EBADMSG: damaged or of another format; -ESTALE: of another session or root;
 * -ENOMEM; another -errno. Not to be interrupted by a handler that opens one too: block signals. */
int view_open(struct view **, const char *directory, const struct index_stamp *expected);
/* A view of the same index that maps more of it, after -EOVERFLOW. The old one stays mapped, since a thread may be in it.
 * Opens nothing. 0, -ENOMEM. */
int view_grow(struct view **, const struct view *old);
/* Unmaps it; no thread may be in it. */
void view_abandon(struct view *);

struct view_found {
    bool dir_known;
    bool known;            /* the name is there; entry and branch are valid */
    struct record_dir dir; /* if dir_known */
    struct record_entry entry;
    char branch[RECORD_BRANCH_MAX]; /* where entry.branch says a branch; else empty */
    uint32_t gains;                 /* the channel's, from before the look (names/names.h) */
};

/* As of one moment: the directory, the name in it (none is looked up if length is 0) and its branch. 0; -EOVERFLOW: the
 * index has outgrown what is mapped of it, see view_grow; -EBUSY: its writer stands still in the middle of a change, or is
 * dead; -EBADMSG. */
int view_find(struct view *, struct dirid, const char *name, size_t length, struct view_found *);
/* Is there such a directory? A hint: what is being changed just now may be there or not, nobody is waited for, and it takes
 * little stack. */
bool view_knows(struct view *, const struct dirid *);

/* The name of the branch of that word, among those that this index knows. 0, -ENOENT, or as view_find. */
int view_find_branch(struct view *, uint32_t word, char branch[RECORD_BRANCH_MAX]);

/* How far a directory has been listed: after the name of that hash. To begin with: zeros but for the hash. */
struct view_place {
    uint64_t hash;
    uint64_t stamp; /* of the directory; 0: not begun */
    size_t length;
    char name[RECORD_NAME_MAX];
};

/* The names of a directory in the order of their hashes, from that place on; afterwards it is where that has ended. All that
 * are there from the begin to the end are told, each once. `each` answers 0 to go on, anything else to stop; that is the
 * answer then, else 0 at the end, or as view_find; -ENODATA: the directory is not loaded, or was not all the while. */
int view_list(struct view *, struct dirid, struct view_place *, index_each *each, void *context);
