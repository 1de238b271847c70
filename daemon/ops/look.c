/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "ops/look.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "disk/disk.h"
#include "disk/stall_watch.h"
#include "home/home.h"
#include "reply/reply.h"
#include "union/disk.h"

/* The place was followed from the root. One in the trunk says something of the directory's names only if it led there; a leaf
 * that is gone holds nothing. */
static int look_freshly(const struct shuntd *shuntd, const struct home_dir *dir, const struct record_entry *entry,
                        const char *path, struct statx *stat)
{
    struct statx parent;
    const int code = disk_look_freshly(shuntd->root.path, path + strlen(shuntd->root.path) + 1, &parent, stat);
    if (entry->branch != 0 || parent.stx_ino == 0)
        return parent.stx_ino == 0 && code == -ENOENT ? -ESTALE : code;
    return dirid_equal(dirid_of(&parent), dir->id) ? code : -ESTALE;
}

/* What is at a path that leads to another directory by now says nothing of this one. */
static int look_in_trunk(const struct shuntd *shuntd, const struct home_dir *dir, const char *name, struct statx *stat)
{
    const int fd = disk_open_trunk(shuntd, dir->path, dir->id);
    if (fd < 0)
        return fd;
    const int code = sys_statx(fd, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO, stat);
    sys_close(fd);
    return code;
}

static int look_at_place(const struct shuntd *shuntd, const struct home_dir *dir, const struct record_entry *entry,
                         const char *path, size_t length, struct statx *stat)
{
    int code = 0;
    if (!shuntd->root.keeps_names)
        code = entry->branch == 0 ? look_in_trunk(shuntd, dir, path + strlen(path) - length, stat)
                                  : sys_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO, stat);
    return code == 0 && !shuntd->root.keeps_names ? 0 : look_freshly(shuntd, dir, entry, path, stat);
}

int look_at_entry(const struct shuntd *shuntd, const struct home_dir *dir, const struct record_entry *entry, const char *name,
                  size_t length, struct statx *stat)
{
    char path[PATH_MAX];
    const int code = reply_path(shuntd, dir, entry, name, length, path);
    return code != 0 ? code : STALL_WATCHED(shuntd->stall_watch, look_at_place(shuntd, dir, entry, path, length, stat));
}

void look_refresh_parent(const struct shuntd *shuntd, const char *path)
{
    const char *end = strrchr(path, '/');
    char full[2 * PATH_MAX];
    struct stall_watch_call call;
    struct statx stat;
    if (!shuntd->root.keeps_names || path[0] == '/')
        return;
    snprintf(full, sizeof full, "%s/%.*s", shuntd->root.path, end != NULL ? (int)(end - path) : 0, path);
    stall_watch_begin(shuntd->stall_watch, &call);
    sys_statx(AT_FDCWD, full, AT_STATX_FORCE_SYNC, STATX_MTIME | STATX_CTIME, &stat);
    stall_watch_end(shuntd->stall_watch, &call);
}
