/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/quota.h"

#include <errno.h>
#include <stdbool.h>

#include "base/sys.h"
#include "base/text.h"
#include "index/record.h"
#include "union/disk.h"

#define QUOTA_LEVELS_MAX 256

/* The identity of a directory needs no server. */
static bool quota_stat(const char *path, struct statx *to)
{
    return sys_statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, to) == 0;
}

static bool quota_is_same(const struct statx *a, const struct statx *b)
{
    return a->stx_ino == b->stx_ino && disk_device(a) == disk_device(b);
}

int quota_of_directory(int trunk, const char *root)
{
    char path[DISK_PROC_SIZE + 3 * QUOTA_LEVELS_MAX], proc[DISK_PROC_SIZE];
    struct statx top, here, below = {0};
    struct text text;
    disk_proc(proc, trunk);
    text_init(&text, path, sizeof path);
    text_add(&text, proc);
    if (!quota_stat(root, &top))
        return 0;
    for (; text_ok(&text) && quota_stat(path, &here) && !quota_is_same(&here, &top) && !quota_is_same(&here, &below);
         below = here) {
        const long size = SYS4(SYS_getxattr, path, "ceph.quota", NULL, 0);
        if (size != -ENODATA)
            return size >= 0 ? RECORD_WHY_DEVICE : 0;
        text_add(&text, "/..");
    }
    return 0;
}
