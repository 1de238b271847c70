/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "home/state.h"
#include "union/placement.h"

/* So many births by alternating processes call for one more leaf to be open: a process that makes its files
 * alone in a directory never reaches it, two that create at the same time do within some hundred files. */
#define ALTERNATIONS_FOR_A_LEAF 64
/* What a leaf that another node looked into holds before its owner leaves it (design, Placement): at first
 * this, so that a look at each of a few files does not cost a directory each; and twice as much after so many
 * leaves, so that a million files never make more than some 200 of them. With each leaf twice as much as in
 * the one before was measured on CephFS, too: where another node opens each file 100 files after it was made,
 * a create cost 1.5 requests with 1,000 files, and soon 4, since leaves grow ever larger than the distance.
 */
#define FIRST_LOOKED_LIMIT 16
#define LEAVES_BEFORE_TWICE 16

static int make_room(struct home_share *share, uint32_t leaf)
{
    if (leaf < share->leaf_count)
        return 0;
    uint32_t *more = realloc(share->leaf_names, (leaf + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    memset(more + share->leaf_count, 0, (leaf + 1 - share->leaf_count) * sizeof *more);
    share->leaf_names = more;
    share->leaf_count = leaf + 1;
    return 0;
}

int home_leaf_count(struct home_share *share, uint32_t leaf, int32_t change)
{
    int code = make_room(share, leaf);
    if (code == 0 && (change > 0 || share->leaf_names[leaf] >= (uint32_t)-change))
        share->leaf_names[leaf] += (uint32_t)change;
    return code;
}

static bool wants_another(struct home_share *share, uint64_t maker)
{
    share->alternations += maker != share->last_maker;
    share->last_maker = maker;
    return share->open_count < HOME_OPEN_LEAVES && share->alternations > ALTERNATIONS_FOR_A_LEAF * share->open_count;
}

static uint32_t looked_limit(const struct home_share *share)
{
    uint32_t twice = share->leaf_count / LEAVES_BEFORE_TWICE;
    return twice < 24 ? (uint32_t)FIRST_LOOKED_LIMIT << twice : UINT32_MAX;
}

static bool is_left(const struct home_share *share, uint32_t at)
{
    return share->looked_into[at] && share->leaf_names[share->open[at]] >= looked_limit(share);
}

bool home_leaf_is_left(const struct home_share *share, uint32_t leaf)
{
    for (uint32_t i = 0; i < share->open_count; i++)
        if (share->open[i] == leaf)
            return is_left(share, i);
    return false;
}

static bool is_used_up(const struct home_share *share, uint32_t at, uint32_t full)
{
    return share->leaf_names[share->open[at]] >= full || is_left(share, at);
}

int home_leaf_pick(struct home_share *share, uint64_t hash, uint64_t maker, uint32_t full, uint32_t *leaf, uint32_t *fresh)
{
    *fresh = share->leaf_count;
    if (share->open_count == 0 || wants_another(share, maker))
        return -EAGAIN;
    uint32_t at = placement_leaf(hash, share->open_count);
    *leaf = share->open[at];
    return is_used_up(share, at, full) ? -EAGAIN : 0;
}

static uint32_t slot_for_another(const struct home_share *share, uint32_t full)
{
    uint32_t at = 0;
    while (at < share->open_count && !is_used_up(share, at, full))
        at++;
    return at;
}

int home_leaf_open(struct home_share *share, uint32_t leaf, uint32_t full)
{
    uint32_t at = slot_for_another(share, full);
    int code = make_room(share, leaf);
    if (code != 0 || at == HOME_OPEN_LEAVES)
        return code;
    share->looked_into[at] = false;
    share->open[at] = leaf;
    share->open_count += at == share->open_count;
    return 0;
}

void home_leaf_looked_into(struct home_share *share, uint32_t leaf)
{
    for (uint32_t i = 0; i < share->open_count; i++)
        share->looked_into[i] |= share->open[i] == leaf;
}

void home_leaves_close(struct home_share *share)
{
    share->open_count = 0;
    share->alternations = 0;
}

void home_leaves_forget(struct home_share *share)
{
    free(share->leaf_names);
    share->leaf_names = NULL;
    share->leaf_count = share->open_count = 0;
    share->alternations = 0;
    share->lost++;
}
