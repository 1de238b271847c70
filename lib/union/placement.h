/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Where a new regular file goes: the rule, and nothing but the rule. Pure. */

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

/* Is a create in a directory redirected to this node's own mirror? `nodes` is how many nodes have touched the
 * directory in this session (this one included), `creates` how many files this node has made in it.
 *
 * auto: a directory that one node alone has touched stays plain. With two, a node moves to its mirror after
 * 16 files of its own, with more nodes sooner (16 shared out: 32/nodes), from 16 nodes on at once: an
 * observer is as expensive as a writer (measured on CephFS: 3.99 requests a create instead of 1.00). */
static inline bool placement_redirects(enum config_placement placement, uint32_t nodes, uint64_t creates)
{
    if (placement == CONFIG_BRANCH)
        return true;
    if (nodes < 2)
        return false;
    return nodes >= 16 || creates >= 32 / nodes;
}

/* Which of the open leaves takes a name. Several are open when several processes create, since the kernel
 * serialises creates in one directory of one mount. */
static inline uint32_t placement_leaf(uint64_t hash, uint32_t open_leaves)
{
    return (uint32_t)((hash >> 32) % open_leaves);
}

/* How many names a leaf takes, by the file system's magic number (statfs). GPFS stops delegating a directory
 * beyond 1,024 entries; the Lustre manual begins to advise splitting at about 50,000. */
static inline uint32_t placement_leaf_full(uint64_t filesystem)
{
    return filesystem == 0x47504653 /* GPFS */ ? 1000 : 50000;
}
