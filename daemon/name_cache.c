/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "name_cache.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/hook.h"
#include "base/sys.h"
#include "union/disk.h"

static bool name_cache_is_mount_of(const struct mntent *mount, uint64_t device)
{
    struct statx stat;
    return strncmp(mount->mnt_type, "nfs", 3) == 0 &&
           sys_statx(AT_FDCWD, mount->mnt_dir, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, &stat) == 0 &&
           disk_device(&stat) == device;
}

/* All mounts of one device have the same options (nfs_compare_mount_options of Linux 6.1). */
static bool name_cache_is_off(uint64_t device)
{
    struct mntent mount;
    char line[4096];
    bool is_off = false;
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    while (mounts != NULL && !is_off && getmntent_r(mounts, &mount, line, sizeof line) != NULL)
        is_off = name_cache_is_mount_of(&mount, device) &&
                 (hasmntopt(&mount, "lookupcache=none") != NULL || hasmntopt(&mount, "noac") != NULL);
    if (mounts != NULL)
        endmntent(mounts);
    return is_off;
}

bool name_cache_is_kept(const char *root)
{
    struct statfs system;
    struct statx stat;
    if (BROKEN("names-kept"))
        return true;
    return statfs(root, &system) == 0 && system.f_type == NFS_SUPER_MAGIC &&
           sys_statx(AT_FDCWD, root, 0, STATX_INO, &stat) == 0 && !name_cache_is_off(disk_device(&stat));
}
