/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What finds, makes, moves and removes names. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "view.h"

static void names_reply_entry(fuse_req_t request, int error, const struct fuse_entry_param *entry)
{
    if (error)
        fuse_reply_err(request, error);
    else if (fuse_reply_entry(request, entry) < 0) /* interrupted: the kernel does not know it */
        inode_forget(&view_of(request)->inodes, view_inode(request, entry->ino), 1);
}

/* 0 or errno. */
static int names_enter_gone(fuse_req_t request, mode_t type, struct fuse_entry_param *entry)
{
    const struct fuse_ctx *asks = fuse_req_ctx(request);
    struct inode *inode = inode_take_gone(&view_of(request)->inodes, type);
    if (!inode)
        return ENOMEM;
    *entry =
        (struct fuse_entry_param){.attr = {.st_ino = inode->number, .st_mode = type, .st_uid = asks->uid, .st_gid = asks->gid}};
    view_tell(entry, inode);
    return 0;
}

/* After the call that made a name. Another process may have removed it since, and made it of something else, which would be an
 * error to the kernel. It looks again before it uses the name. */
static void names_made(fuse_req_t request, int result, fuse_ino_t parent, const char *name, mode_t type)
{
    struct fuse_entry_param entry;
    int error = result < 0 ? errno : view_lookup(request, parent, name, &entry);
    const bool is_another = error == 0 && (entry.attr.st_mode & S_IFMT) != type;
    if (is_another)
        inode_forget(&view_of(request)->inodes, view_inode(request, entry.ino), 1);
    if (is_another || (result == 0 && error == ENOENT))
        error = names_enter_gone(request, type, &entry);
    names_reply_entry(request, error, &entry);
}

static void names_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    if (view_is_refused(request))
        return;
    struct fuse_entry_param entry;
    const int error = view_lookup(request, parent, name, &entry);
    names_reply_entry(request, error, &entry);
}

static void names_forget(fuse_req_t request, fuse_ino_t number, uint64_t lookups)
{
    inode_forget(&view_of(request)->inodes, view_inode(request, number), lookups);
    fuse_reply_none(request);
}

static void names_forget_many(fuse_req_t request, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        inode_forget(&view_of(request)->inodes, view_inode(request, forgets[i].ino), forgets[i].nlookup);
    fuse_reply_none(request);
}

static void names_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
    if (view_is_refused(request))
        return;
    view_take_umask(request);
    names_made(request, mkdirat(view_inode(request, parent)->fd, name, mode), parent, name, S_IFDIR);
}

static void names_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
    if (view_is_refused(request))
        return;
    view_take_umask(request);
    names_made(request, mknodat(view_inode(request, parent)->fd, name, mode, device), parent, name,
               mode & S_IFMT ? mode & S_IFMT : S_IFREG);
}

static void names_symlink(fuse_req_t request, const char *target, fuse_ino_t parent, const char *name)
{
    if (view_is_refused(request))
        return;
    names_made(request, symlinkat(target, view_inode(request, parent)->fd, name), parent, name, S_IFLNK);
}

/* The kernel wants the inode that it named, whatever the name leads to by now. */
static void names_link(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char *name)
{
    char path[VIEW_PATH];
    struct inode *inode = view_inode(request, number);
    struct fuse_entry_param entry = {0};
    if (view_is_refused(request))
        return;
    int error = 0;
    if (linkat(AT_FDCWD, view_path(inode, path), view_inode(request, parent)->fd, name, AT_SYMLINK_FOLLOW) < 0 ||
        fstat(inode->fd, &entry.attr) < 0)
        error = errno;
    else {
        inode_look(&view_of(request)->inodes, inode, parent, name);
        view_tell(&entry, inode);
    }
    names_reply_entry(request, error, &entry);
}

static void names_unlink(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    if (view_is_refused(request))
        return;
    view_reply(request, unlinkat(view_inode(request, parent)->fd, name, 0));
}

static void names_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    if (view_is_refused(request))
        return;
    view_reply(request, unlinkat(view_inode(request, parent)->fd, name, AT_REMOVEDIR));
}

static void names_rename(fuse_req_t request, fuse_ino_t from, const char *old, fuse_ino_t to, const char *new, unsigned flags)
{
    if (view_is_refused(request))
        return;
    view_reply(request, renameat2(view_inode(request, from)->fd, old, view_inode(request, to)->fd, new, flags));
}

void view_add_names(struct fuse_lowlevel_ops *operations)
{
    operations->lookup = names_lookup;
    operations->forget = names_forget;
    operations->forget_multi = names_forget_many;
    operations->mkdir = names_mkdir;
    operations->mknod = names_mknod;
    operations->symlink = names_symlink;
    operations->link = names_link;
    operations->unlink = names_unlink;
    operations->rmdir = names_rmdir;
    operations->rename = names_rename;
}
