/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/inherit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "union/attributes.h"

/* What a new file takes from the flags of its directory, on any of the file systems that have them. */
#define FLAGS_INHERITED                                                                                                        \
    (unsigned)(FS_SYNC_FL | FS_NODUMP_FL | FS_NOATIME_FL | FS_DIRSYNC_FL | FS_NOCOW_FL | FS_COMPR_FL | FS_NOCOMP_FL |          \
               FS_CASEFOLD_FL | FS_PROJINHERIT_FL | FS_DAX_FL)
/* An append-only or immutable directory refuses the rename that gives a leaf its number; the key of an
 * encrypted one cannot be handed on. */
#define FLAGS_REFUSED (unsigned)(FS_APPEND_FL | FS_IMMUTABLE_FL | FS_ENCRYPT_FL)
#define EXTRA_INHERITED                                                                                                        \
    (unsigned)(FS_XFLAG_RTINHERIT | FS_XFLAG_SYNC | FS_XFLAG_NOATIME | FS_XFLAG_NODUMP | FS_XFLAG_PROJINHERIT |                \
               FS_XFLAG_EXTSZINHERIT | FS_XFLAG_NODEFRAG | FS_XFLAG_DAX | FS_XFLAG_COWEXTSIZE)
#define INHERIT_STAT (STATX_TYPE | STATX_MODE | STATX_UID | STATX_GID | STATX_INO)

/* The answers of a file system, or of a mount, that has no such thing. */
static bool inherit_is_unknown(int error)
{
    return error == -ENOTTY || error == -EOPNOTSUPP || error == -ENOSYS || error == -EINVAL;
}

/* What the caller may not do: the comparison says afterwards whether it mattered. */
static bool inherit_is_refused(int error)
{
    return error == -EPERM || error == -EACCES || inherit_is_unknown(error);
}

static int inherit_get_flags(int fd, unsigned *flags)
{
    int value = 0;
    int error = (int)SYS3(SYS_ioctl, fd, FS_IOC_GETFLAGS, &value);
    *flags = error < 0 ? 0 : (unsigned)value;
    return inherit_is_unknown(error) ? 0 : error;
}

static int inherit_get_extra(int fd, struct fsxattr *extra, bool *has)
{
    *extra = (struct fsxattr){0};
    int error = (int)SYS3(SYS_ioctl, fd, FS_IOC_FSGETXATTR, extra);
    *has = error == 0;
    return inherit_is_unknown(error) ? 0 : error;
}

/* A client of a network file system may go by what another node has changed since (NFS), and does so no more once it has asked,
 * also of access control lists. */
int inherit_init(struct inherit *from, int trunk)
{
    *from = (struct inherit){0};
    disk_proc(from->proc, trunk);
    int error = sys_statx(trunk, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, INHERIT_STAT, &from->stat);
    if (error < 0)
        return error;
    if (!S_ISDIR(from->stat.stx_mode))
        return -ENOTDIR;
    int fd = disk_reopen(trunk);
    from->unread = fd == -EACCES;
    if (fd < 0)
        return from->unread ? 0 : fd;
    error = inherit_get_flags(fd, &from->flags);
    if (error == 0)
        error = inherit_get_extra(fd, &from->extra, &from->has_extra);
    sys_close(fd);
    return error == 0 && from->flags & FLAGS_REFUSED ? RECORD_WHY_FLAGS : error;
}

static int inherit_apply_owner(const struct inherit *from, int to)
{
    struct statx now;
    int error = sys_statx(to, "", AT_EMPTY_PATH, INHERIT_STAT, &now);
    if (error < 0)
        return error;
    uid_t user = now.stx_uid == from->stat.stx_uid ? (uid_t)-1 : from->stat.stx_uid;
    gid_t group = now.stx_gid == from->stat.stx_gid ? (gid_t)-1 : from->stat.stx_gid;
    if (user == (uid_t)-1 && group == (gid_t)-1)
        return 0;
    error = sys_fchownat(to, "", user, group, AT_EMPTY_PATH);
    if (error < 0)
        return inherit_is_refused(error) ? RECORD_WHY_OWNER : error;
    error = sys_statx(to, "", AT_EMPTY_PATH, INHERIT_STAT, &now);
    if (error < 0)
        return error;
    return now.stx_uid == from->stat.stx_uid && now.stx_gid == from->stat.stx_gid ? 0 : RECORD_WHY_OWNER;
}

static int inherit_apply_flags(const struct inherit *from, int to)
{
    unsigned now;
    int error = from->unread ? 0 : inherit_get_flags(to, &now);
    if (error < 0 || from->unread)
        return error;
    if (((now ^ from->flags) & FLAGS_INHERITED) == 0)
        return 0;
    int value = (int)((now & ~FLAGS_INHERITED) | (from->flags & FLAGS_INHERITED));
    error = (int)SYS3(SYS_ioctl, to, FS_IOC_SETFLAGS, &value);
    if (error < 0)
        return inherit_is_refused(error) ? RECORD_WHY_FLAGS : error;
    error = inherit_get_flags(to, &now);
    if (error < 0)
        return error;
    return ((now ^ from->flags) & FLAGS_INHERITED) == 0 ? 0 : RECORD_WHY_FLAGS;
}

static bool inherit_extra_is_equal(const struct fsxattr *a, const struct fsxattr *b)
{
    return a->fsx_projid == b->fsx_projid && ((a->fsx_xflags ^ b->fsx_xflags) & EXTRA_INHERITED) == 0 &&
           (!(a->fsx_xflags & FS_XFLAG_EXTSZINHERIT) || a->fsx_extsize == b->fsx_extsize) &&
           (!(a->fsx_xflags & FS_XFLAG_COWEXTSIZE) || a->fsx_cowextsize == b->fsx_cowextsize);
}

static int inherit_apply_extra(const struct inherit *from, int to)
{
    struct fsxattr now;
    bool has;
    int error = from->unread ? 0 : inherit_get_extra(to, &now, &has);
    if (error < 0 || from->unread)
        return error;
    if (has != from->has_extra)
        return RECORD_WHY_FLAGS;
    if (!has || inherit_extra_is_equal(&now, &from->extra))
        return 0;
    now.fsx_xflags = (now.fsx_xflags & ~EXTRA_INHERITED) | (from->extra.fsx_xflags & EXTRA_INHERITED);
    now.fsx_projid = from->extra.fsx_projid;
    now.fsx_extsize = from->extra.fsx_extsize;
    now.fsx_cowextsize = from->extra.fsx_cowextsize;
    error = (int)SYS3(SYS_ioctl, to, FS_IOC_FSSETXATTR, &now);
    if (error < 0)
        return inherit_is_refused(error) ? RECORD_WHY_FLAGS : error;
    error = inherit_get_extra(to, &now, &has);
    if (error < 0)
        return error;
    return has && inherit_extra_is_equal(&now, &from->extra) ? 0 : RECORD_WHY_FLAGS;
}

static int inherit_apply_attributes(const struct inherit *from, int to)
{
    return attributes_copy(from->proc, to, from->in_equal);
}

/* Last: until then nobody else can come in. An access ACL is part of the mode, so its own bits were set
 * before; the owner's, which may be more here, are set now. The kernel drops setgid silently where the caller
 * is not of the group. */
static int inherit_apply_mode(const struct inherit *from, int to)
{
    struct statx now;
    mode_t mode = (from->stat.stx_mode & 07777) | 0500;
    int error = sys_statx(to, "", AT_EMPTY_PATH, INHERIT_STAT, &now);
    if (error == 0 && (now.stx_mode & 07777) != mode) {
        error = sys_fchmod(to, mode);
        if (error < 0)
            return inherit_is_refused(error) ? RECORD_WHY_MODE : error;
        error = sys_statx(to, "", AT_EMPTY_PATH, INHERIT_STAT, &now);
    }
    if (error < 0)
        return error;
    return (now.stx_mode & 07777) == mode ? 0 : RECORD_WHY_MODE;
}

int inherit_apply(const struct inherit *from, int to)
{
    static int (*const steps[])(const struct inherit *, int) = {inherit_apply_owner, inherit_apply_flags, inherit_apply_extra,
                                                                inherit_apply_attributes, inherit_apply_mode};
    int answer = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int step = steps[i](from, to);
        if (step < 0)
            return step;
        answer = answer ? answer : step;
    }
    return answer;
}
