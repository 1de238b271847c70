/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader.h"

struct view *view_of(fuse_req_t request)
{
    return fuse_req_userdata(request);
}

struct inode *view_inode(fuse_req_t request, fuse_ino_t number)
{
    return number == FUSE_ROOT_ID ? view_of(request)->inodes.root : (struct inode *)(uintptr_t)number;
}

const char *view_path(const struct inode *inode, char to[VIEW_PATH])
{
    snprintf(to, VIEW_PATH, "/proc/self/fd/%d", inode->fd);
    return to;
}

void view_reply(fuse_req_t request, long result)
{
    fuse_reply_err(request, result < 0 ? errno : 0);
}

void view_take_umask(fuse_req_t request)
{
    static __thread bool is_own; /* threads share a umask, until they have one */
    static __thread mode_t mask;
    const mode_t wanted = fuse_req_ctx(request)->umask;
    if (!is_own) {
        unshare(CLONE_FS);
        umask(wanted);
        is_own = true;
        mask = wanted;
    }
    if (mask != wanted)
        umask(mask = wanted);
}

/* The number is an address, and may be another file's later: with the generation it is not. */
void view_tell(struct fuse_entry_param *entry, struct inode *inode)
{
    pages_told(&inode->pages, &entry->attr);
    entry->ino = (uintptr_t)inode;
    entry->generation = inode->birth;
}

static int view_enter(fuse_req_t request, int fd, fuse_ino_t parent, const char *name, struct fuse_entry_param *entry)
{
    struct inode *inode = inode_take(&view_of(request)->inodes, fd, &entry->attr, parent, name);
    if (!inode)
        return ENOMEM;
    view_tell(entry, inode);
    return 0;
}

static int view_lookup_on_disk(fuse_req_t request, fuse_ino_t parent, const char *name, struct fuse_entry_param *entry)
{
    const int fd = reader_open_name(view_of(request)->reader, view_inode(request, parent)->fd, name);
    *entry = (struct fuse_entry_param){0};
    if (fd < 0)
        return -fd;
    if (fstat(fd, &entry->attr) == 0)
        return view_enter(request, fd, parent, name, entry);
    const int error = errno;
    close(fd);
    return error;
}

int view_lookup(fuse_req_t request, fuse_ino_t parent, const char *name, struct fuse_entry_param *entry)
{
    const int at = view_inode(request, parent)->fd;
    if (view_of(request)->reader)
        return view_lookup_on_disk(request, parent, name, entry);
    const uint64_t since = inode_now(&view_of(request)->inodes);
    *entry = (struct fuse_entry_param){0};
    if (fstatat(at, name, &entry->attr, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    struct inode *known = inode_find(&view_of(request)->inodes, &entry->attr, since, parent, name);
    if (known) {
        view_tell(entry, known);
        return 0;
    }
    const int fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (fstat(fd, &entry->attr) == 0)
        return view_enter(request, fd, parent, name, entry);
    const int error = errno;
    close(fd);
    return error;
}

int view_lookup_open(fuse_req_t request, int fd, fuse_ino_t parent, const char *name, struct fuse_entry_param *entry)
{
    char path[VIEW_PATH];
    *entry = (struct fuse_entry_param){0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int held = fstat(fd, &entry->attr) < 0 ? -1 : open(path, O_PATH | O_CLOEXEC);
    return held < 0 ? errno : view_enter(request, held, parent, name, entry);
}
