/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "repair/fsck.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/stopping.h"
#include "union/conflict.h"
#include "union/disk.h"
#include "union/mirror.h"

#define FSCK_RESTORED "shunt-restored"
#define FSCK_TRIES 10000

struct orphan {
    struct fsck_refused *refused;
    int to; /* if it is restored */
    const char *node;
    size_t node_length;
};

/* One that is refused for what it is itself keeps no other one. */
static int fsck_orphan_note(struct orphan *orphan, const char *name, int error)
{
    struct fsck_refused *refused = orphan->refused;
    if (error != -EPERM && error != -EISDIR && error != -EBUSY)
        return error;
    if (refused->count++ == 0) {
        refused->error = error;
        snprintf(refused->name, sizeof refused->name, "%s", name);
    }
    return 0;
}

/* NAME, or if another orphan had it what the loser of a conflict is called. */
static int fsck_orphan_restore_one(int leaf, const char *name, void *argument)
{
    struct orphan *orphan = argument;
    char called[RECORD_NAME_MAX + 1];
    int error = stopping() ? -EINTR : disk_rename_new(leaf, name, orphan->to, name);
    for (unsigned i = 1; error == -EEXIST && i < FSCK_TRIES; i++) {
        conflict_make_name(called, name, orphan->node, orphan->node_length, i);
        error = disk_rename_new(leaf, name, orphan->to, called);
    }
    return fsck_orphan_note(orphan, name, error);
}

static int fsck_orphan_delete_one(int leaf, const char *name, void *argument)
{
    return stopping() ? -EINTR : fsck_orphan_note(argument, name, sys_unlinkat(leaf, name, 0));
}

static int fsck_orphan_remove_empty(const struct union_root *root, const struct mirror_found *mirror)
{
    char path[PATH_MAX];
    int error = mirrors_branch_path(root, mirror->branch, path, sizeof path);
    return error < 0 ? error : mirror_remove(path, mirror->name);
}

/* Some file systems skip names when others go meanwhile: again, until nothing is left or nothing goes. */
static int fsck_orphan_empty_mirror(const struct union_root *root, const struct mirror_found *mirror, int fd,
                                    mirrors_each *each, struct orphan *orphan)
{
    int error = 0;
    for (int pass = 0; pass < 3; pass++) {
        orphan->refused->count = 0;
        error = mirrors_files(fd, each, orphan);
        if (error == 0)
            error = fsck_orphan_remove_empty(root, mirror);
        if (error != -ENOTEMPTY)
            break;
    }
    return error == -ENOTEMPTY && orphan->refused->count > 0 ? orphan->refused->error : error;
}

static int fsck_orphan_open_directory(int at, const char *name, mode_t mode)
{
    int error = sys_mkdirat(at, name, mode);
    if (error < 0 && error != -EEXIST)
        return error;
    return sys_openat(at, name, DISK_DIRECTORY, 0);
}

/* With the mode of the mirror: users that could not read the files before cannot now. */
static int fsck_orphan_open_restored(const struct union_root *root, const struct mirror_found *mirror, int fd)
{
    struct statx stat;
    int error = sys_statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stat);
    if (error < 0)
        return error;
    int at = sys_openat(AT_FDCWD, root->path, DISK_DIRECTORY, 0);
    if (at < 0)
        return at;
    int all = fsck_orphan_open_directory(at, FSCK_RESTORED, 0755);
    sys_close(at);
    if (all < 0)
        return all;
    int one = fsck_orphan_open_directory(all, mirror->name, 0700);
    sys_close(all);
    if (one >= 0)
        sys_fchmod(one, (stat.stx_mode & 07777) | 0700);
    return one;
}

int fsck_restore(const struct union_root *root, const struct mirror_found *mirror, struct fsck_refused *refused)
{
    uint32_t incarnation;
    const char *branch = root->branches[mirror->branch - 1];
    struct orphan orphan = {.refused = refused, .node = branch};
    orphan.node_length = layout_branch_node(branch, strlen(branch), &incarnation);
    refused->count = 0;
    int fd = mirrors_open(root, mirror);
    if (fd < 0)
        return fd;
    orphan.to = fsck_orphan_open_restored(root, mirror, fd);
    int error = orphan.to < 0 ? orphan.to : fsck_orphan_empty_mirror(root, mirror, fd, fsck_orphan_restore_one, &orphan);
    if (orphan.to >= 0)
        sys_close(orphan.to);
    sys_close(fd);
    return error;
}

int fsck_delete(const struct union_root *root, const struct mirror_found *mirror, struct fsck_refused *refused)
{
    struct orphan orphan = {.refused = refused};
    refused->count = 0;
    int fd = mirrors_open(root, mirror);
    if (fd < 0)
        return fd;
    int error = fsck_orphan_empty_mirror(root, mirror, fd, fsck_orphan_delete_one, &orphan);
    sys_close(fd);
    return error;
}
