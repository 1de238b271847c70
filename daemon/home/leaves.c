/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "home/home.h"
#include "union/placement.h"

/* So many births by alternating processes call for one more leaf to be open: a process that makes its files
 * alone in a directory never reaches it, two that create at the same time do within some hundred files. */
#define ALTERNATIONS_FOR_A_LEAF 64

static int make_room(struct home_dir *dir, uint32_t leaf)
{
    if (leaf < dir->leaf_count)
        return 0;
    uint32_t *more = realloc(dir->leaf_names, (leaf + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    memset(more + dir->leaf_count, 0, (leaf + 1 - dir->leaf_count) * sizeof *more);
    dir->leaf_names = more;
    dir->leaf_count = leaf + 1;
    return 0;
}

int home_leaf_count(struct home_dir *dir, uint32_t leaf, int32_t change)
{
    int code = make_room(dir, leaf);
    if (code == 0 && (change > 0 || dir->leaf_names[leaf] >= (uint32_t)-change))
        dir->leaf_names[leaf] += (uint32_t)change;
    return code;
}

static bool wants_another(struct home_dir *dir, pid_t maker)
{
    dir->alternations += maker != dir->last_maker;
    dir->last_maker = maker;
    return dir->open_count < HOME_OPEN_LEAVES &&
           dir->alternations > ALTERNATIONS_FOR_A_LEAF * dir->open_count;
}

int home_leaf_pick(struct home_dir *dir, uint64_t hash, pid_t maker, uint32_t full, uint32_t *leaf,
                   uint32_t *fresh)
{
    *fresh = dir->leaf_count;
    if (dir->open_count == 0 || wants_another(dir, maker))
        return -EAGAIN;
    *leaf = dir->open[placement_leaf(hash, dir->open_count)];
    return dir->leaf_names[*leaf] < full ? 0 : -EAGAIN;
}

int home_leaf_open(struct home_dir *dir, uint32_t leaf, uint32_t full)
{
    int code = make_room(dir, leaf);
    if (code != 0)
        return code;
    for (uint32_t i = 0; i < dir->open_count; i++)
        if (dir->leaf_names[dir->open[i]] >= full) {
            dir->open[i] = leaf;
            return 0;
        }
    if (dir->open_count < HOME_OPEN_LEAVES)
        dir->open[dir->open_count++] = leaf;
    return 0;
}

void home_leaves_forget(struct home_dir *dir)
{
    free(dir->leaf_names);
    dir->leaf_names = NULL;
    dir->leaf_count = dir->open_count = 0;
    dir->alternations = 0;
}
