/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Open files: the descriptor is the kernel's own of the real file. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lock.h"
#include "view.h"

#define FILES_EXECUTE 0x20 /* the kernel's __FMODE_EXEC: to be executed */

/* What is about the name is over once a file is open; O_DIRECT is the kernel's part, whose buffers the server's are not. */
static int files_flags(struct fuse_file_info *file, int without)
{
    return (file->flags & ~(without | O_DIRECT)) | O_CLOEXEC;
}

/* FUSE has looked whether any user may. What may be executed need not be readable, so the server reads it. */
static int files_may_execute(fuse_req_t request, const char *path)
{
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? errno : view_take_own(request);
}

/* Each write says whether it appends: F_SETFL changes it, and pages that were mapped are written where they are. The descriptor
 * does not append then; that of a file that is only appended to (chattr +a) stays as it is. */
static int files_opened(int fd, int flags)
{
    if (fd >= 0 && flags & O_APPEND)
        fcntl(fd, F_SETFL, flags & ~O_APPEND);
    return fd;
}

static void files_is_open(fuse_req_t request, struct inode *inode, int fd, struct fuse_file_info *file)
{
    file->fh = (uint64_t)fd;
    inode_open(&view_of(request)->inodes, inode, 1);
    backing_open(request, &inode->backing, fd, file);
}

static void files_is_closed(fuse_req_t request, struct inode *inode, int fd)
{
    backing_close(request, &inode->backing);
    inode_open(&view_of(request)->inodes, inode, -1);
    close(fd);
}

static void files_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
    char path[VIEW_PATH];
    struct inode *inode = view_inode(request, number);
    int fd = -1, error = view_take_user(request);
    const int flags = files_flags(file, O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | FILES_EXECUTE);
    view_path(inode, path);
    if (error == 0 && file->flags & FILES_EXECUTE)
        error = files_may_execute(request, path);
    if (error == 0)
        fd = files_opened(open(path, flags), flags);
    if (fd < 0) {
        fuse_reply_err(request, error ? error : errno);
        return;
    }
    files_is_open(request, inode, fd, file);
    if (fuse_reply_open(request, file) < 0) /* interrupted: nobody will close it */
        files_is_closed(request, inode, fd);
}

/* A symbolic link that came to be here since the kernel looked: it looks again, and follows it itself. */
static int files_made_link(int error)
{
    return error == ELOOP ? ESTALE : error;
}

static void files_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *file)
{
    struct fuse_entry_param entry;
    if (view_is_refused(request))
        return;
    view_take_umask(request);
    const int flags = files_flags(file, O_NOCTTY) | O_CREAT | O_NOFOLLOW;
    const int fd = files_opened(openat(view_inode(request, parent)->fd, name, flags, mode), flags);
    const int error = fd < 0 ? files_made_link(errno) : view_lookup_open(request, fd, parent, name, &entry);
    if (error) {
        fuse_reply_err(request, error);
        if (fd >= 0)
            close(fd);
        return;
    }
    struct inode *inode = view_inode(request, entry.ino);
    files_is_open(request, inode, fd, file);
    if (fuse_reply_create(request, &entry, file) < 0) {
        files_is_closed(request, inode, fd);
        inode_forget(&view_of(request)->inodes, inode, 1);
    }
}

static void files_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *file)
{
    struct fuse_bufvec from = FUSE_BUFVEC_INIT(size);
    pages_are_read(&view_inode(request, number)->pages);
    from.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
    from.buf[0].fd = (int)file->fh;
    from.buf[0].pos = offset;
    fuse_reply_data(request, &from, FUSE_BUF_SPLICE_MOVE);
}

/* Bytes, or -errno. */
static ssize_t files_append(int fd, struct fuse_bufvec *from)
{
    struct fuse_bufvec to = FUSE_BUFVEC_INIT(fuse_buf_size(from));
    to.buf[0].mem = malloc(to.buf[0].size);
    ssize_t length = to.buf[0].mem ? fuse_buf_copy(&to, from, 0) : -ENOMEM;
    if (length >= 0) {
        const struct iovec bytes = {to.buf[0].mem, (size_t)length};
        length = pwritev2(fd, &bytes, 1, 0, RWF_APPEND);
        length = length < 0 ? -errno : length;
    }
    free(to.buf[0].mem);
    return length;
}

static ssize_t files_write_at(int fd, off_t offset, struct fuse_bufvec *from)
{
    struct fuse_bufvec to = FUSE_BUFVEC_INIT(fuse_buf_size(from));
    to.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
    to.buf[0].fd = fd;
    to.buf[0].pos = offset;
    return fuse_buf_copy(&to, from, 0);
}

static void files_write(fuse_req_t request, fuse_ino_t number, struct fuse_bufvec *from, off_t offset,
                        struct fuse_file_info *file)
{
    if (view_is_refused(request)) /* the user that writes decides whether set-user-ID goes */
        return;
    pages_are_written(&view_inode(request, number)->pages);
    const bool appends = file->flags & O_APPEND && !file->writepage;
    const ssize_t written = appends ? files_append((int)file->fh, from) : files_write_at((int)file->fh, offset, from);
    if (written < 0)
        fuse_reply_err(request, (int)-written);
    else
        fuse_reply_write(request, (size_t)written);
}

/* What close() has to say, for each descriptor of the process. */
static void files_flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
    lock_drop(view_inode(request, number), file->lock_owner);
    const int copy = fcntl((int)file->fh, F_DUPFD_CLOEXEC, 0);
    view_reply(request, copy < 0 ? fsync((int)file->fh) : close(copy)); /* without a descriptor fsync says it */
}

static void files_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
    struct inode *inode = view_inode(request, number);
    lock_drop_file(inode, file->fh);
    files_is_closed(request, inode, (int)file->fh);
    fuse_reply_err(request, 0);
}

static void files_fsync(fuse_req_t request, fuse_ino_t number, int data_alone, struct fuse_file_info *file)
{
    const int fd = (int)file->fh;
    view_reply(request, data_alone ? fdatasync(fd) : fsync(fd));
}

static void files_fallocate(fuse_req_t request, fuse_ino_t number, int mode, off_t offset, off_t length,
                            struct fuse_file_info *file)
{
    if (view_is_refused(request))
        return;
    view_reply(request, fallocate((int)file->fh, mode, offset, length));
}

static void files_lseek(fuse_req_t request, fuse_ino_t number, off_t offset, int whence, struct fuse_file_info *file)
{
    const off_t at = lseek((int)file->fh, offset, whence);
    if (at < 0)
        fuse_reply_err(request, errno);
    else
        fuse_reply_lseek(request, at);
}

static void files_copy_range(fuse_req_t request, fuse_ino_t from, off_t from_offset, struct fuse_file_info *from_file,
                             fuse_ino_t to, off_t to_offset, struct fuse_file_info *to_file, size_t size, int flags)
{
    if (view_is_refused(request))
        return;
    const ssize_t copied =
        copy_file_range((int)from_file->fh, &from_offset, (int)to_file->fh, &to_offset, size, (unsigned)flags);
    if (copied < 0)
        fuse_reply_err(request, errno);
    else
        fuse_reply_write(request, (size_t)copied);
}

void view_add_files(struct fuse_lowlevel_ops *operations)
{
    operations->open = files_open;
    operations->create = files_create;
    operations->read = files_read;
    operations->write_buf = files_write;
    operations->flush = files_flush;
    operations->release = files_release;
    operations->fsync = files_fsync;
    operations->fallocate = files_fallocate;
    operations->lseek = files_lseek;
    operations->copy_file_range = files_copy_range;
}
