/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "tree/newer.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "api/place.h"

struct leaf {
    uint32_t number;
    uint16_t branch;
    bool newer;
};

static bool newer_is_later(const struct statx_timestamp *one, const struct statx_timestamp *other)
{
    return one->tv_sec != other->tv_sec ? one->tv_sec > other->tv_sec : one->tv_nsec > other->tv_nsec;
}

int newer_add(struct newer *newer, const char *path)
{
    struct place place;
    struct statx stat;
    place_init(&place);
    int error = place_find(&place, path, PLACE_FOLLOW);
    if (error == 0)
        error = folder_stat(&place.folder, &place.root, place.found, &stat);
    else if (error == -ENOTUNIQ)
        error = sys_statx(AT_FDCWD, path, 0, STATX_MTIME, &stat);
    place_finish(&place);
    if (error < 0)
        return error;
    if (!newer->asked || newer_is_later(&stat.stx_mtime, &newer->than))
        newer->than = stat.stx_mtime;
    newer->asked = true;
    return 0;
}

void newer_enter(struct newer *newer, const struct statx *directory)
{
    newer_finish(newer);
    newer->trunk = newer_is_later(&directory->stx_mtime, &newer->than);
}

/* Of an open directory and a path from it. */
static int newer_path(const struct newer *newer, int at, const char *path)
{
    struct statx stat;
    int error = sys_statx(at, path, AT_SYMLINK_NOFOLLOW, STATX_MTIME, &stat);
    return error < 0 ? error : newer_is_later(&stat.stx_mtime, &newer->than);
}

static int newer_compare_leaves(const void *one, const void *other)
{
    const struct leaf *left = one, *right = other;
    if (left->branch != right->branch)
        return left->branch < right->branch ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

static int newer_leaf(const struct newer *newer, const struct folder *folder, const struct union_root *root,
                      const struct union_name *name)
{
    char where[PATH_MAX];
    int error = folder_where(folder, root, name, where, sizeof where);
    if (error < 0)
        return error;
    where[strlen(where) - strlen(name->on_disk) - 1] = '\0';
    return newer_path(newer, AT_FDCWD, where);
}

int newer_name(struct newer *newer, const struct folder *folder, const struct union_root *root, const struct union_name *name)
{
    if (name->branch == 0)
        return newer->trunk;
    struct leaf key = {.number = name->leaf, .branch = name->branch};
    void *found = tfind(&key, &newer->leaves, newer_compare_leaves);
    if (found)
        return (*(struct leaf **)found)->newer;
    struct leaf *leaf = malloc(sizeof *leaf);
    if (!leaf)
        return -ENOMEM;
    int answer = newer_leaf(newer, folder, root, name);
    key.newer = answer > 0;
    *leaf = key;
    if (!tsearch(leaf, &newer->leaves, newer_compare_leaves)) {
        free(leaf);
        return -ENOMEM;
    }
    return answer;
}

int newer_directory(const struct newer *newer, int root_fd, const char *path)
{
    char above[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!slash)
        return newer_path(newer, root_fd, strcmp(path, ".") ? "." : "..");
    size_t length = (size_t)(slash - path);
    memcpy(above, path, length);
    above[length] = '\0';
    return newer_path(newer, root_fd, above);
}

void newer_finish(struct newer *newer)
{
    tdestroy(newer->leaves, free);
    newer->leaves = NULL;
}
