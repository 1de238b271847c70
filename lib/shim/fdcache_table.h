/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The tables of directories that are kept open (fdcache.h), which stand in shim_state (state.h). Below that, as a header of
 * its own: fdcache.h has an inline function that uses it. */

#include <stddef.h>
#include <stdint.h>

#include "names/names.h"
#include "union/layout.h"

#define NEAR_PLACE_MAX (LAYOUT_BRANCH_MAX + RECORD_MIRROR_MAX + 16)

#define FDCACHE_ENTRIES 32 /* of a root and a kind; a process that works in more at once has the longer way to some */
#define FDCACHE_LOOKS 64

/* A directory that is kept open. */
struct fdcache_kept {
    int fd;
    uint64_t ino;
};

/* Its descriptor stays what it is while a thread uses it. A thread that finds it unused may have it say CHANGES, and
 * puts another one there. After a fork in the middle of that, or of a use, it stays so in the child: one
 * fewer. */
struct fdcache_entry {
    uint32_t users;
    uint32_t changes; /* fdcache_state's, and */
    uint64_t seen;    /* the coarse clock's time, when it was looked at last */
    struct fdcache_kept kept;
    size_t length;
    char by[NEAR_PLACE_MAX + 1]; /* a leaf's place, or the identity of a directory of the trunk */
};

struct fdcache_table {
    uint64_t keys[FDCACHE_ENTRIES]; /* of what each is known by; 0: none. The search begins at the key's place */
    struct fdcache_entry all[FDCACHE_ENTRIES];
    uint32_t next; /* to be replaced */
};

struct fdcache_root {
    struct fdcache_kept branches;
    struct fdcache_table leaves, trunk;
};

struct fdcache_state {
    uint32_t changes;              /* counts how often this process has closed or replaced descriptors from NEAR_LOWEST on */
    uint32_t looks[FDCACHE_LOOKS]; /* how often it has looked into which leaf that is not kept; a word for each */
    struct fdcache_root roots[NAMES_ROOTS];
};
