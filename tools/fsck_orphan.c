/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "fsck.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "stopping.h"
#include "union/disk.h"
#include "union/mirror.h"

#define FSCK_RESTORED "shunt-restored"
#define FSCK_TRIES 10000

struct restoring {
    int to;
    const char *node;
    size_t node_length;
};

/* NAME, or if another orphan had it NAME.shunt-conflict-NODE and, if need be, a number. */
static int fsck_orphan_restore_one(int leaf, const char *name, void *argument)
{
    const struct restoring *restoring = argument;
    int error = stopping() ? -EINTR : disk_rename_new(leaf, name, restoring->to, name);
    for (unsigned i = 1; error == -EEXIST && i < FSCK_TRIES; i++) {
        char called[NAME_MAX + 1];
        struct text t;
        text_init(&t, called, sizeof called);
        text_add(&t, name);
        text_add(&t, ".shunt-conflict-");
        text_bytes(&t, restoring->node, restoring->node_length);
        if (i > 1) {
            text_add(&t, ".");
            text_number(&t, i, 10);
        }
        error = text_ok(&t) ? disk_rename_new(leaf, name, restoring->to, called) : -ENAMETOOLONG;
    }
    return error;
}

static int fsck_orphan_delete_one(int leaf, const char *name, void *unused)
{
    return stopping() ? -EINTR : sys_unlinkat(leaf, name, 0);
}

static int fsck_orphan_remove_empty(const struct union_root *root, const struct mirror_found *mirror)
{
    char path[PATH_MAX];
    int error = mirrors_branch_path(root, mirror->branch, path, sizeof path);
    return error < 0 ? error : mirror_remove(path, mirror->name);
}

/* Some file systems skip names when others go meanwhile: again, until nothing is left or nothing goes. */
static int fsck_orphan_empty_mirror(const struct union_root *root, const struct mirror_found *mirror, int fd,
                                    mirrors_each *each, void *argument)
{
    int error = 0;
    for (int pass = 0; pass < 3; pass++) {
        error = mirrors_files(fd, each, argument);
        if (error == 0)
            error = fsck_orphan_remove_empty(root, mirror);
        if (error != -ENOTEMPTY)
            break;
    }
    return error;
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

int fsck_restore(const struct union_root *root, const struct mirror_found *mirror)
{
    uint32_t incarnation;
    const char *branch = root->branches[mirror->branch - 1];
    struct restoring restoring = {.node = branch};
    restoring.node_length = layout_branch_node(branch, strlen(branch), &incarnation);
    int fd = mirrors_open(root, mirror);
    if (fd < 0)
        return fd;
    restoring.to = fsck_orphan_open_restored(root, mirror, fd);
    int error =
        restoring.to < 0 ? restoring.to : fsck_orphan_empty_mirror(root, mirror, fd, fsck_orphan_restore_one, &restoring);
    if (restoring.to >= 0)
        sys_close(restoring.to);
    sys_close(fd);
    return error;
}

int fsck_delete(const struct union_root *root, const struct mirror_found *mirror)
{
    int fd = mirrors_open(root, mirror);
    if (fd < 0)
        return fd;
    int error = fsck_orphan_empty_mirror(root, mirror, fd, fsck_orphan_delete_one, NULL);
    sys_close(fd);
    return error;
}
