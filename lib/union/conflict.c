/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/conflict.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "union/disk.h"
#include "union/sort.h"

#define CONFLICT_INFIX ".shunt-conflict-"

/* What a decision needs to know of one of the places. */
struct claim {
    struct union_name name;
    bool gone; /* since it was listed, or it is the same file as an earlier one */
    bool regular, empty;
    uint64_t device, ino, changed;
};

/* The losers' new names, so that no two get the same: open addressing, at most half full. */
struct taken {
    const char **slots;
    size_t mask;
};

struct spot {
    int dir;
    char path[PATH_MAX];
};

/* Where an entry is on disk, as (descriptor, path). False: its path is too long. */
static bool conflict_spot_of(const struct conflict_scene *scene, const struct union_name *name, const char *called,
                             struct spot *spot)
{
    struct text t;
    text_init(&t, spot->path, sizeof spot->path);
    spot->dir = scene->directory;
    if (name->branch > 0) {
        spot->dir = AT_FDCWD;
        layout_leaf(&t, scene->root->path, scene->root->branches[name->branch - 1], scene->listing->marker.mirror, name->leaf);
        text_add(&t, "/");
    }
    text_add(&t, called);
    return text_ok(&t);
}

/* 0 or -errno: nothing is decided without it. What may not be looked at (in a directory that may only be listed) is taken for
 * what its directory says it is. */
static int conflict_claim_look(const struct conflict_scene *scene, struct claim *claim)
{
    struct spot spot;
    struct statx stat;
    const unsigned wanted = STATX_TYPE | STATX_INO | STATX_SIZE | STATX_CTIME;
    claim->regular = claim->name.type == DT_REG;
    claim->ino = claim->name.ino;
    if (!conflict_spot_of(scene, &claim->name, claim->name.on_disk, &spot))
        return 0;
    int error = sys_statx(spot.dir, spot.path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, wanted, &stat);
    claim->gone = error == -ENOENT;
    if (error < 0)
        return error == -ENOENT || error == -EACCES ? 0 : error;
    claim->regular = S_ISREG(stat.stx_mode);
    claim->empty = claim->regular && stat.stx_size == 0;
    claim->device = disk_device(&stat);
    claim->ino = stat.stx_ino;
    claim->changed = clock_stamp(stat.stx_ctime);
    return 0;
}

/* What a move left after when it was cut short: it must not bring the name back after its end. */
static void conflict_drop(const struct conflict_scene *scene, struct claim *claim)
{
    struct spot spot;
    claim->gone = true;
    if (scene->flags & LISTING_SETTLE && claim->regular && claim->device != 0 &&
        conflict_spot_of(scene, &claim->name, claim->name.on_disk, &spot))
        sys_unlinkat(spot.dir, spot.path, 0);
}

/* Claims stand in order of branch, the trunk first: the first of one inode keeps it. */
static void conflict_drop_same_files(const struct conflict_scene *scene, struct claim *claims, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = 0; j < i && !claims[i].gone; j++)
            if (!claims[j].gone && claims[i].ino == claims[j].ino && claims[i].device == claims[j].device)
                conflict_drop(scene, &claims[i]);
}

/* Is the one in the trunk a whole copy of the one in a branch? It has the name that tells so besides its own. 1, 0 or -errno.
 */
static int conflict_is_copy(const struct conflict_scene *scene, const struct claim *copy, const struct claim *original)
{
    char called[LAYOUT_UNFINISHED + 1];
    struct text t;
    struct statx stat;
    text_init(&t, called, sizeof called);
    layout_copy(&t, original->ino);
    const int error = sys_statx(scene->directory, called, AT_SYMLINK_NOFOLLOW, STATX_INO, &stat);
    if (error < 0)
        return error == -ENOENT || error == -EACCES ? 0 : error;
    return stat.stx_ino == copy->ino && disk_device(&stat) == copy->device;
}

/* An export copied it and did not come to remove the original. */
static int conflict_drop_originals(const struct conflict_scene *scene, struct claim *claims, size_t count)
{
    if (claims[0].name.branch != 0 || claims[0].gone || !claims[0].regular || !scene->listing->unfinished)
        return 0;
    int is_copy = 0;
    for (size_t i = 1; i < count && is_copy >= 0; i++) {
        is_copy = !claims[i].gone && claims[i].regular ? conflict_is_copy(scene, &claims[0], &claims[i]) : 0;
        if (is_copy > 0)
            conflict_drop(scene, &claims[i]);
    }
    return is_copy < 0 ? is_copy : 0;
}

static bool conflict_claim_beats(const struct claim *a, const struct claim *b)
{
    bool a_special = !a->regular && a->name.branch == 0, b_special = !b->regular && b->name.branch == 0;
    if (a_special != b_special)
        return a_special;
    if (a->empty != b->empty)
        return b->empty;
    return a->changed > b->changed;
}

/* Puts the one that keeps the name first and all others that still stand after it; answers how many there
 * are. */
static size_t conflict_decide(struct claim *claims, size_t count, struct union_name *to)
{
    const struct claim *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (!claims[i].gone && (!best || conflict_claim_beats(&claims[i], best)))
            best = &claims[i];
    if (!best)
        return 0;
    size_t kept = 0;
    to[kept++] = best->name;
    for (size_t i = 0; i < count; i++)
        if (!claims[i].gone && &claims[i] != best)
            to[kept++] = claims[i].name;
    return kept;
}

static int conflict_look_at_group(const struct conflict_scene *scene, struct claim *claims, const struct union_name *group,
                                  size_t count)
{
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        claims[i].name = group[i];
        error = conflict_claim_look(scene, &claims[i]);
    }
    if (error < 0)
        return error;
    conflict_drop_same_files(scene, claims, count);
    return conflict_drop_originals(scene, claims, count);
}

/* In place, over the entries of one name. -errno, or how many are left. */
static ssize_t conflict_settle_group(const struct conflict_scene *scene, struct union_name *group, size_t count)
{
    const int settles = union_root_settles(scene->root, scene->flags);
    if (settles < 0)
        return settles;
    struct claim *claims = calloc(count, sizeof *claims);
    if (!claims)
        return -ENOMEM;
    const int error = conflict_look_at_group(scene, claims, group, count);
    const size_t kept = error == 0 ? conflict_decide(claims, count, group) : 0;
    free(claims);
    return error < 0 ? error : (ssize_t)kept;
}

static bool conflict_taken_holds(const struct taken *taken, const char *name, size_t *slot)
{
    *slot = record_hash(name, strlen(name)) & taken->mask;
    for (; taken->slots[*slot]; *slot = (*slot + 1) & taken->mask)
        if (!strcmp(taken->slots[*slot], name))
            return true;
    return false;
}

void conflict_make_name(char to[RECORD_NAME_MAX + 1], const char *name, const char *node, size_t node_length, unsigned attempt)
{
    char tail[sizeof CONFLICT_INFIX + LAYOUT_NODE_MAX + 16];
    struct text t;
    text_init(&t, tail, sizeof tail);
    text_add(&t, CONFLICT_INFIX);
    text_bytes(&t, node, node_length);
    if (attempt > 1) {
        text_add(&t, ".");
        text_number(&t, attempt, 10);
    }
    size_t length = strlen(name);
    if (length + t.length > RECORD_NAME_MAX) {
        length = RECORD_NAME_MAX - t.length;
        while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80)
            length--; /* not in the middle of a character of UTF-8 */
    }
    memcpy(to, name, length);
    memcpy(to + length, tail, t.length + 1);
}

static int conflict_rename_loser(const struct conflict_scene *scene, const struct union_name *loser, const char *called)
{
    struct spot from, to;
    if (!conflict_spot_of(scene, loser, loser->on_disk, &from) || !conflict_spot_of(scene, loser, called, &to))
        return -ENAMETOOLONG;
    return disk_rename_new(from.dir, from.path, to.dir, to.path);
}

/* What cannot be renamed (no permission, a read-only file system) is listed by the new name all the same. */
static int conflict_name_loser(const struct conflict_scene *scene, struct taken *taken, struct union_name *loser)
{
    const char *node = "trunk";
    size_t node_length = strlen(node), slot;
    uint32_t incarnation;
    if (loser->branch > 0) {
        node = scene->root->branches[loser->branch - 1];
        node_length = layout_branch_node(node, strlen(node), &incarnation);
    }
    char called[RECORD_NAME_MAX + 1];
    for (unsigned attempt = 1;; attempt++) {
        conflict_make_name(called, loser->name, node, node_length, attempt);
        if (listing_find(scene->listing, called, strlen(called)) || conflict_taken_holds(taken, called, &slot))
            continue;
        const int settles = union_root_settles(scene->root, scene->flags);
        int error = settles > 0 ? conflict_rename_loser(scene, loser, called) : -EROFS;
        if (settles < 0)
            return settles;
        if (error == -EEXIST)
            continue;
        loser->name = taken->slots[slot] = listing_keep(scene->listing, called, strlen(called));
        if (!loser->name)
            return -ENOMEM;
        if (error == 0)
            loser->on_disk = loser->name;
        return 0;
    }
}

static int conflict_name_losers(const struct conflict_scene *scene, struct union_name *losers, size_t count)
{
    struct taken taken = {.mask = 1};
    while (taken.mask < 2 * count)
        taken.mask = 2 * taken.mask + 1;
    taken.slots = calloc(taken.mask + 1, sizeof *taken.slots);
    int error = taken.slots ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && error == 0; i++)
        error = conflict_name_loser(scene, &taken, &losers[i]);
    free(taken.slots);
    return error;
}

static size_t conflict_group_end(const struct listing *listing, size_t begin, size_t count)
{
    size_t end = begin + 1;
    while (end < count && !strcmp(listing->names[begin].name, listing->names[end].name))
        end++;
    return end;
}

/* Closes up the winners at the front of the names and collects the losers; both keep their order. */
static int conflict_part(const struct conflict_scene *scene, struct union_name *losers, size_t *lost)
{
    struct listing *listing = scene->listing;
    size_t count = listing->count, kept = 0;
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = conflict_group_end(listing, begin, count);
        ssize_t left = 1;
        if (end - begin > 1)
            left = conflict_settle_group(scene, listing->names + begin, end - begin);
        if (left < 0)
            return (int)left;
        if (left > 0)
            listing->names[kept++] = listing->names[begin];
        for (ssize_t i = 1; i < left; i++)
            losers[(*lost)++] = listing->names[begin + (size_t)i];
    }
    listing->count = kept;
    return 0;
}

static size_t conflict_count_doubles(const struct listing *listing)
{
    size_t doubles = 0;
    for (size_t i = 1; i < listing->count; i++)
        doubles += !strcmp(listing->names[i - 1].name, listing->names[i].name);
    return doubles;
}

int conflict_settle(const struct conflict_scene *scene)
{
    struct listing *listing = scene->listing;
    size_t doubles = conflict_count_doubles(listing), lost = 0;
    if (doubles == 0)
        return 0;
    struct union_name *losers = calloc(doubles, sizeof *losers);
    if (!losers)
        return -ENOMEM;
    int error = conflict_part(scene, losers, &lost);
    if (error == 0 && lost > 0)
        error = conflict_name_losers(scene, losers, lost);
    if (error == 0 && lost > 0) {
        /* They were in the same array before, so there is room. */
        memcpy(listing->names + listing->count, losers, lost * sizeof *losers);
        listing->count += lost;
        listing->conflicts = lost;
        sort_names(listing->names, listing->count);
    }
    free(losers);
    return error;
}
