/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "union/identity.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>

#include "base/sys.h"

#define IDENTITY_HANDLE_MAX 128 /* MAX_HANDLE_SZ of the kernel */
#define IDENTITY_SECOND 1000000000u

/* struct file_handle of the kernel. */
struct identity_handle {
    uint32_t size;
    int32_t type;
    unsigned char bytes[IDENTITY_HANDLE_MAX];
};

/* enum fid_type of the kernel: inode number and generation. OCFS2 and tmpfs use it with three words, NFS and GFS2 use the
 * number of words. A FUSE file system's is another one, 0x81: it means something to one mount alone. */
#define IDENTITY_INO32_GEN 1

static bool identity_is_lasting(const struct identity_handle *handle)
{
    return handle->type == IDENTITY_INO32_GEN || (uint32_t)handle->type == handle->size / 4;
}

void identity_add_handle(int at, const char *path, int flags, struct statx *stat)
{
    const int follow = flags & AT_SYMLINK_NOFOLLOW ? 0 : AT_SYMLINK_FOLLOW;
    struct identity_handle handle = {.size = IDENTITY_HANDLE_MAX};
    int mount;
    if ((stat->stx_mask & STATX_BTIME) || !S_ISDIR(stat->stx_mode) ||
        SYS5(SYS_name_to_handle_at, at, path, &handle, &mount, follow | (flags & AT_EMPTY_PATH)) != 0 ||
        !identity_is_lasting(&handle))
        return;
    const uint64_t sum = DIRID_BY_HANDLE | record_sum(handle.bytes, handle.size, (uint32_t)handle.type);
    stat->stx_mask |= STATX_BTIME;
    stat->stx_btime.tv_sec = (int64_t)(sum / IDENTITY_SECOND);
    stat->stx_btime.tv_nsec = (uint32_t)(sum % IDENTITY_SECOND);
}

int identity_stat(struct dirid root, int at, const char *path, int flags, struct statx *stat)
{
    const int code = sys_statx(at, path, flags, IDENTITY_MASK, stat);
    if (code == 0 && dirid_is_by_handle(root))
        identity_add_handle(at, path, flags, stat);
    return code;
}

int identity_stat_root(int directory, struct statx *stat)
{
    const int code = sys_statx(directory, "", AT_EMPTY_PATH, IDENTITY_MASK, stat);
    if (code == 0)
        identity_add_handle(directory, "", AT_EMPTY_PATH, stat);
    return code;
}
