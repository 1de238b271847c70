/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "home/home.h"
#include "home/state.h"
#include "union/placement.h"

/* So many creates by alternating processes call for one more leaf to be open: a process that makes its files
 * alone in a directory never reaches it, two that create at the same time do within some hundred files. */
#define ALTERNATIONS_FOR_A_LEAF 64
/* What a leaf that another node looked into holds before its owner goes on in another one: at first
 * this, so that a look at each of a few files does not cost a directory each; and twice as much after so many
 * leaves, so that a million files never make more than some 200 of them. With each leaf twice as much as in
 * the one before was measured on CephFS, too: where another node opens each file 100 files after it was made,
 * a create cost 1.5 requests with 1,000 files, and soon 4, since leaves grow ever larger than the distance.
 */
#define FIRST_LOOKED_LIMIT 16
#define LEAVES_BEFORE_TWICE 16

static int leaves_make_room(struct home_leaves *share, uint32_t leaf)
{
    if (leaf < share->count)
        return 0;
    uint32_t *more = realloc(share->name_counts, (leaf + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    memset(more + share->count, 0, (leaf + 1 - share->count) * sizeof *more);
    share->name_counts = more;
    share->count = leaf + 1;
    return 0;
}

int home_leaf_add(struct home_leaves *share, uint32_t leaf, int32_t change)
{
    int code = leaves_make_room(share, leaf);
    if (code == 0 && (change > 0 || share->name_counts[leaf] >= (uint32_t)-change))
        share->name_counts[leaf] += (uint32_t)change;
    return code;
}

static bool leaves_wants_another(struct home_leaves *share, uint64_t client)
{
    share->alternations += client != share->last_client;
    share->last_client = client;
    return share->open_count < HOME_OPEN_LEAVES && share->alternations > ALTERNATIONS_FOR_A_LEAF * share->open_count;
}

static uint32_t leaves_looked_limit(const struct home_leaves *share)
{
    uint32_t twice = share->count / LEAVES_BEFORE_TWICE;
    return twice < 24 ? (uint32_t)FIRST_LOOKED_LIMIT << twice : UINT32_MAX;
}

static bool leaves_is_left(const struct home_leaves *share, uint32_t at)
{
    return share->visited[at] && share->name_counts[share->open[at]] >= leaves_looked_limit(share);
}

bool home_leaves_are_empty(const struct home_leaves *share)
{
    for (uint32_t leaf = 0; leaf < share->count; leaf++)
        if (share->name_counts[leaf] != 0)
            return false;
    return true;
}

bool home_leaf_is_retired(const struct home_leaves *share, uint32_t leaf)
{
    for (uint32_t i = 0; i < share->open_count; i++)
        if (share->open[i] == leaf)
            return leaves_is_left(share, i);
    return false;
}

static bool leaves_is_used_up(const struct home_leaves *share, uint32_t at, uint32_t full)
{
    return share->name_counts[share->open[at]] >= full || leaves_is_left(share, at);
}

int home_leaf_pick(struct home_leaves *share, uint64_t hash, uint64_t client, uint32_t full, uint32_t *leaf, uint32_t *fresh)
{
    *fresh = share->count;
    if (share->open_count == 0 || leaves_wants_another(share, client))
        return -EAGAIN;
    uint32_t at = placement_leaf(hash, share->open_count);
    *leaf = share->open[at];
    return leaves_is_used_up(share, at, full) ? -EAGAIN : 0;
}

static uint32_t leaves_slot_for_another(const struct home_leaves *share, uint32_t full)
{
    uint32_t at = 0;
    while (at < share->open_count && !leaves_is_used_up(share, at, full))
        at++;
    return at;
}

int home_leaf_open(struct home_leaves *share, uint32_t leaf, uint32_t full)
{
    uint32_t at = leaves_slot_for_another(share, full);
    int code = leaves_make_room(share, leaf);
    if (code != 0 || at == HOME_OPEN_LEAVES)
        return code;
    share->visited[at] = false;
    share->open[at] = leaf;
    share->open_count += at == share->open_count;
    return 0;
}

void home_leaf_note_visit(struct home_leaves *share, uint32_t leaf)
{
    for (uint32_t i = 0; i < share->open_count; i++)
        share->visited[i] |= share->open[i] == leaf;
}

void home_leaves_retire(struct home_leaves *share)
{
    share->open_count = 0;
    share->alternations = 0;
}

void home_leaves_forget(struct home_leaves *share)
{
    free(share->name_counts);
    share->name_counts = NULL;
    share->count = share->open_count = 0;
    share->alternations = 0;
    share->generation++;
}
