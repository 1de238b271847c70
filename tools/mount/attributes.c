/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What asks or changes a file's attributes. Paths lead through the inode's descriptor, so that a directory's mirrors follow. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "view.h"

#define ATTRIBUTES_SET                                                                                                         \
    (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID | FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_ATIME |                   \
     FUSE_SET_ATTR_MTIME)

static void attributes_get(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
    struct stat stat;
    struct inode *inode = view_inode(request, number);
    if (fstat(inode->fd, &stat) < 0)
        fuse_reply_err(request, errno);
    else
        pages_reply(&view_of(request)->dropper, &inode->pages, request, number, &stat);
}

/* Pages that are dirty wait for this answer, so they are not thrown away before it. */
static void attributes_reply_set(fuse_req_t request, struct inode *inode)
{
    struct stat stat;
    if (fstat(inode->fd, &stat) < 0) {
        fuse_reply_err(request, errno);
        return;
    }
    pages_told(&inode->pages, &stat);
    fuse_reply_attr(request, &stat, 0);
}

static struct timespec attributes_time(int to_set, int is_set, int is_now, struct timespec time)
{
    if (to_set & is_now)
        return (struct timespec){.tv_nsec = UTIME_NOW};
    return to_set & is_set ? time : (struct timespec){.tv_nsec = UTIME_OMIT};
}

static int attributes_set_times(const char *path, const struct stat *stat, int to_set)
{
    const struct timespec times[2] = {attributes_time(to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, stat->st_atim),
                                      attributes_time(to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, stat->st_mtim)};
    return utimensat(AT_FDCWD, path, times, 0);
}

static int attributes_set_all(const struct inode *inode, const struct stat *stat, int to_set, struct fuse_file_info *file)
{
    char path[VIEW_PATH];
    int result = 0;
    view_path(inode, path);
    /* Nothing to set is chown(-1, -1), which the kernel below takes as a change. */
    if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID) || !(to_set & ATTRIBUTES_SET))
        result = fchownat(AT_FDCWD, path, to_set & FUSE_SET_ATTR_UID ? stat->st_uid : (uid_t)-1,
                          to_set & FUSE_SET_ATTR_GID ? stat->st_gid : (gid_t)-1, 0);
    /* With a size it is what the kernel takes from a file that is truncated, and takes below as well. */
    if (result == 0 && to_set & FUSE_SET_ATTR_MODE && !(to_set & FUSE_SET_ATTR_SIZE))
        result = chmod(path, stat->st_mode);
    if (result == 0 && to_set & FUSE_SET_ATTR_SIZE)
        result = file ? ftruncate((int)file->fh, stat->st_size) : truncate(path, stat->st_size);
    if (result == 0 && to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME))
        result = attributes_set_times(path, stat, to_set);
    return result;
}

/* Before a file is written the kernel takes set-user-ID and set-group-ID from it, in the name of the process that writes, which
 * need not be the owner. (libfuse cannot say that the server does it.) A chmod by another is refused by default_permissions. */
static bool attributes_is_kernels(const struct view *view, const struct inode *inode, mode_t mode, int to_set)
{
    struct stat now;
    return view->is_for_others && (to_set & ATTRIBUTES_SET) == FUSE_SET_ATTR_MODE && S_ISREG(inode->type) &&
           fstat(inode->fd, &now) == 0 &&
           (now.st_mode & 07777 & ~(S_ISUID | S_ISGID)) == (mode & 07777 & ~(S_ISUID | S_ISGID)) &&
           (mode & ~now.st_mode & 07777) == 0;
}

static void attributes_set(fuse_req_t request, fuse_ino_t number, struct stat *stat, int to_set, struct fuse_file_info *file)
{
    struct inode *inode = view_inode(request, number);
    const bool is_kernels = attributes_is_kernels(view_of(request), inode, stat->st_mode, to_set);
    const int error = is_kernels ? view_take_own(request) : view_take_user(request);
    if (error)
        fuse_reply_err(request, error);
    else if (attributes_set_all(inode, stat, to_set, file) < 0)
        fuse_reply_err(request, errno);
    else
        attributes_reply_set(request, inode);
}

static void attributes_access(fuse_req_t request, fuse_ino_t number, int mask)
{
    char path[VIEW_PATH];
    if (view_is_refused(request))
        return;
    /* With AT_EACCESS: the kernel has put the real ids, which access() is about, into what it asks with. */
    view_reply(request, faccessat(AT_FDCWD, view_path(view_inode(request, number), path), mask, AT_EACCESS));
}

static void attributes_readlink(fuse_req_t request, fuse_ino_t number)
{
    char target[PATH_MAX];
    const ssize_t length = readlinkat(view_inode(request, number)->fd, "", target, sizeof target);
    if (length < 0 || length == sizeof target) {
        fuse_reply_err(request, length < 0 ? errno : ENAMETOOLONG);
        return;
    }
    target[length] = '\0';
    fuse_reply_readlink(request, target);
}

static void attributes_statfs(fuse_req_t request, fuse_ino_t number)
{
    struct statvfs stat;
    if (fstatvfs(view_inode(request, number)->fd, &stat) < 0)
        fuse_reply_err(request, errno);
    else
        fuse_reply_statfs(request, &stat);
}

/* A size of 0 asks for the size. */
static void attributes_reply_xattr(fuse_req_t request, ssize_t length, const char *value, size_t size)
{
    if (length < 0)
        fuse_reply_err(request, errno);
    else if (size == 0)
        fuse_reply_xattr(request, (size_t)length);
    else
        fuse_reply_buf(request, value, (size_t)length);
}

static void attributes_getxattr(fuse_req_t request, fuse_ino_t number, const char *name, size_t size)
{
    char path[VIEW_PATH], value[XATTR_SIZE_MAX];
    if (view_is_refused(request))
        return;
    if (size > sizeof value)
        size = sizeof value;
    const ssize_t length = getxattr(view_path(view_inode(request, number), path), name, value, size);
    attributes_reply_xattr(request, length, value, size);
}

static void attributes_listxattr(fuse_req_t request, fuse_ino_t number, size_t size)
{
    char path[VIEW_PATH], list[XATTR_LIST_MAX];
    if (view_is_refused(request))
        return;
    if (size > sizeof list)
        size = sizeof list;
    const ssize_t length = listxattr(view_path(view_inode(request, number), path), list, size);
    attributes_reply_xattr(request, length, list, size);
}

static void attributes_setxattr(fuse_req_t request, fuse_ino_t number, const char *name, const char *value, size_t size,
                                int flags)
{
    char path[VIEW_PATH];
    if (view_is_refused(request))
        return;
    view_reply(request, setxattr(view_path(view_inode(request, number), path), name, value, size, flags));
}

static void attributes_removexattr(fuse_req_t request, fuse_ino_t number, const char *name)
{
    char path[VIEW_PATH];
    if (view_is_refused(request))
        return;
    view_reply(request, removexattr(view_path(view_inode(request, number), path), name));
}

void view_add_attributes(struct fuse_lowlevel_ops *operations)
{
    operations->getattr = attributes_get;
    operations->setattr = attributes_set;
    operations->access = attributes_access;
    operations->readlink = attributes_readlink;
    operations->statfs = attributes_statfs;
    operations->getxattr = attributes_getxattr;
    operations->listxattr = attributes_listxattr;
    operations->setxattr = attributes_setxattr;
    operations->removexattr = attributes_removexattr;
}
