/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The tables of directories that are kept open (fdcache.h), which stand in shim_state (state.h). */

#include <stddef.h>
#include <stdint.h>

#include "names/names.h"
#include "union/layout.h"

#define FDCACHE_PLACE_MAX (LAYOUT_BRANCH_MAX + RECORD_MIRROR_MAX + 16)

#define FDCACHE_LEAVES 32 /* of a root; a process that looks into more has the longer way to some */
#define FDCACHE_TRIES 8

/* A directory that is kept open. */
struct fdcache_kept {
    int fd;
    uint64_t ino;
};

/* Written once, by the thread that has taken its key (TAKEN in fdcache.c); what is published never changes. */
struct fdcache_entry {
    struct fdcache_kept kept;
    size_t length;
    char place[FDCACHE_PLACE_MAX + 1];
};

struct fdcache_root {
    struct fdcache_kept branches;
    uint32_t tries;                /* how often the directory of branches has been opened */
    uint64_t keys[FDCACHE_LEAVES]; /* of the leaves' places; 0: free. The search begins at the key's place */
    struct fdcache_entry leaves[FDCACHE_LEAVES];
};

struct fdcache_state {
    struct fdcache_root roots[NAMES_ROOTS];
};
