/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The union of a directory, read from the file system: the trunk and its mirrors in every branch.
 *
 * This is the truth that every index is made from. shuntd reads it when a directory is first used; the tools
 * and libshunt read it with no daemon running. It calls the kernel directly, so it sees the plain trees even
 * in a process that runs under the shim. Not for signal handlers: it allocates. Thread-safe (no shared
 * state). */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/record.h"
#include "union/layout.h"
#include "union/marker.h"

/* Takes a name of a physical directory. 0, or -errno, and no more is told. */
typedef int listing_tell(void *to, const char *name, size_t length, uint64_t ino, uint8_t type);

/* A physical directory of that branch (0: the trunk): `directory` itself, which is open (also O_PATH), if `path` is empty, or
 * at `path` below the branch. 1: the process may read it, and all its names were told; 0: they are not known for certain;
 * -errno of `tell`. If it is not 1, what was told counts for nothing. */
typedef int listing_walk(void *context, int directory, const char *path, uint16_t branch, listing_tell *tell, void *to);
/* What the marker of an open directory says, all but its path. 1; 0: it is not known; -ENOENT: there is none. */
typedef int listing_marker(void *context, int directory, struct marker *);

/* Where the names of a physical directory may be known without reading it (catalogue/known.h, of which this room knows
 * nothing). Called by every thread that lists. */
struct listing_source {
    void *context;
    listing_walk *walk;
    listing_marker *marker;
    bool is_asked_first; /* also about what is not open; before a directory or a marker is read, else only about a directory
                            that turns out to be large */
};

/* A root and its branches, as they were when it was opened. */
struct union_root {
    char path[PATH_MAX]; /* canonical, no trailing slash */
    struct dirid id;
    uint64_t device;  /* as st_dev has it */
    bool keeps_names; /* this node's kernel may go by names that another node has changed since (NFS); who opens it may know
                         that it is mounted otherwise */
    size_t branch_count;
    const char **branches;               /* names, sorted when it was opened; number N of a union_name is branches[N - 1] */
    char (*names)[2][LAYOUT_BRANCH_MAX]; /* of each, and what it was renamed to */
    struct census *census;               /* where the root's directories stand, if that was ever asked */
    const struct listing_source *source; /* NULL: directories are read */
    bool (*may_settle)(const void *); /* ... of settle_context: may its lister still change anything (LISTING_SETTLE)? Asked */
    const void *settle_context;       /* by every thread that lists, before each change. NULL: it may */
};

/* `path` may be any spelling of the root or, with LISTING_FIND_ROOT, of anything beneath it: the nearest
 * directory upwards that holds `.shunt` is taken. 0, -ENOENT, -ENOTDIR, -ENOTUNIQ (no `.shunt` found: not a
 * root; with find), another -errno. A root without `.shunt` is a root with no branches. */
enum { LISTING_FIND_ROOT = 1 };
int union_root_init(struct union_root *, const char *path, unsigned flags);
void union_root_finish(struct union_root *);
/* Appends a branch that was made meanwhile; answers its number, or -errno. The names of others stay where
 * they are. */
int union_root_add(struct union_root *, const char *branch);
/* A branch has been renamed, which it is once: its number stays. Threads may read names meanwhile. */
void union_root_rename(struct union_root *, uint16_t number, const char *branch);
/* With LISTING_SETTLE: 1: something is to be changed on disk now; -ECANCELED: its lister may not change anything any more.
 * Without: 0. */
int union_root_settles(const struct union_root *, unsigned flags);
/* The number of a branch, 0: it is not known. */
uint16_t union_root_branch(const struct union_root *, const char *branch);
/* Appends all that were made meanwhile: 0 or -errno. */
int union_root_look(struct union_root *);

struct union_name {
    const char *name;    /* what it is called, owned by the listing */
    const char *on_disk; /* what it is called on disk: another name for the loser of a conflict not yet renamed */
    uint8_t type;        /* DT_* */
    uint16_t branch;     /* 0 the trunk, else 1 + index in branches */
    uint32_t leaf;
    uint64_t ino;
};

struct listing {
    struct dirid id;
    bool marked;          /* it has a marker that is its own */
    bool trunk_unlisted;  /* no permission to list the trunk directory */
    bool unfinished;      /* a marker or a copy was there whose writing has not ended, or was cut short */
    bool hides;           /* a directory there has a name of shunt's own (listing_find_hidden): no entry, nor looked into */
    bool trunk_alone;     /* its mirrors were not read (LISTING_TRUNK) */
    struct marker marker; /* if marked */
    size_t count;
    struct union_name *names; /* sorted by name (memcmp), unique; without shunt's own */
    size_t conflicts;         /* how many of them lost a conflict */
    size_t leaves;            /* of own_branch: the number of the highest leaf + 1 */
    size_t *leaf_counts;      /* of own_branch: names in each leaf, `leaves` of them */
    struct listing_arena *arena;
};

/* Lists one directory. `directory` is an open descriptor of it (not closed; may be O_PATH), `path` its place
 * relative to the root ("." is the root itself), for messages and to tell a copied marker from a moved one.
 *
 * Conflicts (one name in two places): same inode is none, the trunk is told; nor is a copy in the trunk that
 * stands next to its original, since an export was cut short between the two: the original goes; else a
 * non-empty file beats an empty one, else the newer change time wins; anything that is no regular file in the
 * trunk beats a file in a branch. The loser is listed as NAME.shunt-conflict-NODE (NODE is `trunk` for the
 * trunk; a number follows where that is taken) and with LISTING_SETTLE also renamed to that on disk. With
 * LISTING_SETTLE a marker that was copied natively along with its directory, while the original still stands,
 * is removed, one whose directory is a restored copy is claimed (rewritten for this directory), and what was never
 * written to its end is swept, so nothing else may be at work there: the directory's coordinator, or the holder of the root, is
 * the only one. If it is not any more (may_settle), nothing is changed, and the answer is -ECANCELED. Without LISTING_SETTLE
 * the same is only assumed for the listing. own_branch: 0 or the number whose leaves are counted. 0 or -errno.
 *
 * With LISTING_TRUNK its mirrors are not read, which others do (listing_init_mirrors), but where something unfinished is in the
 * trunk, which may decide a conflict. */
enum { LISTING_SETTLE = 1, LISTING_TRUNK = 2 };
int listing_init(struct listing *, const struct union_root *, int directory, const char *path, uint16_t own_branch,
                 unsigned flags);
/* Lists the mirrors of that name in `count` branches alone: `names` in the order in which they are found, so that one may be
 * there twice. 0 or -errno. */
int listing_init_mirrors(struct listing *, const struct union_root *, const char *mirror, const uint16_t *branches,
                         size_t count, uint16_t own_branch);
void listing_finish(struct listing *);
/* Removes what was never written to its end, which is no directory: nobody else may be at work in that one. 0 or -errno. */
int listing_sweep(int directory);
/* A directory in it that a program without shunt gave the name of something unfinished; false: there is none. */
bool listing_find_hidden(int directory, char name[LAYOUT_UNFINISHED + 1]);
/* The entry of that name, or NULL. */
const struct union_name *listing_find(const struct listing *, const char *name, size_t length);

/* The real place of one entry of a listing: ROOT/PATH/NAME or ROOT/.shunt/b/.... 0 or -ENAMETOOLONG. `path`
 * as above. */
int listing_where(const struct listing *, const struct union_root *, const char *path, const struct union_name *, char *to,
                  size_t size);
