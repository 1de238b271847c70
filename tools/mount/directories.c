/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Directories that are listed. With attributes that the kernel may not keep, READDIRPLUS saves nothing: `ls -l` of 100 files is
 * the same 617 LOOKUP, 104 GETATTR and 205 GETXATTR with it. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader.h"
#include "union/listing.h"
#include "view.h"

struct directories_stream {
    DIR *dir;               /* NULL: it is read from disk */
    struct listing listing; /* then: as it was when its beginning was read; `.` and `..` come before it */
    int directory;          /* ... the inode's */
    struct dirent entry;    /* ... the next one */
    off_t at;               /* where it stands */
    struct dirent *next;    /* read, and not yet given */
};

/* 0 or errno. */
static int directories_start(const struct view *view, const struct inode *inode, struct directories_stream *stream)
{
    char path[VIEW_PATH];
    if (view->reader) {
        stream->directory = inode->fd;
        return access(view_path(inode, path), R_OK) < 0 ? errno : 0;
    }
    const int fd = open(view_path(inode, path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    stream->dir = fd < 0 ? NULL : fdopendir(fd);
    const int error = stream->dir ? 0 : errno;
    if (fd >= 0 && !stream->dir)
        close(fd);
    return error;
}

static void directories_end(struct directories_stream *stream)
{
    if (stream->dir)
        closedir(stream->dir);
    else
        listing_finish(&stream->listing);
    free(stream);
}

static void directories_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
    if (view_is_refused(request))
        return;
    struct directories_stream *stream = calloc(1, sizeof *stream);
    const int error = stream ? directories_start(view_of(request), view_inode(request, number), stream) : ENOMEM;
    if (error) {
        fuse_reply_err(request, error);
        free(stream);
        return;
    }
    file->fh = (uintptr_t)stream;
    if (fuse_reply_open(request, file) < 0) /* interrupted: nobody will close it */
        directories_end(stream);
}

/* The entry at stream->at: as directories_next. */
static int directories_next_on_disk(struct directories_stream *stream)
{
    struct dirent *entry = &stream->entry;
    const size_t at = (size_t)stream->at;
    if (at >= stream->listing.count + 2)
        return 0;
    entry->d_off = stream->at + 1;
    if (at < 2) {
        struct stat stat = {0};
        strcpy(entry->d_name, at == 0 ? "." : "..");
        fstatat(stream->directory, entry->d_name, &stat, 0);
        entry->d_ino = stat.st_ino;
        entry->d_type = DT_DIR;
    } else {
        const struct union_name *name = &stream->listing.names[at - 2];
        snprintf(entry->d_name, sizeof entry->d_name, "%s", name->name);
        entry->d_ino = name->ino;
        entry->d_type = name->type;
    }
    stream->next = entry;
    return 1;
}

/* 1 with an entry in stream->next, 0 at the end, or -1 with errno. */
static int directories_next(struct directories_stream *stream)
{
    if (stream->next)
        return 1;
    errno = 0;
    if (!stream->dir)
        return directories_next_on_disk(stream);
    stream->next = readdir(stream->dir);
    return stream->next ? 1 : errno ? -1 : 0;
}

static size_t directories_fill(fuse_req_t request, struct directories_stream *stream, char *to, size_t size)
{
    size_t used = 0;
    while (directories_next(stream) == 1) {
        const struct dirent *entry = stream->next;
        const struct stat stat = {.st_ino = entry->d_ino, .st_mode = DTTOIF(entry->d_type)};
        const size_t length = fuse_add_direntry(request, to + used, size - used, entry->d_name, &stat, entry->d_off);
        if (length > size - used)
            break;
        used += length;
        stream->at = entry->d_off;
        stream->next = NULL;
    }
    return used;
}

/* At its beginning it is read, also again: nothing tells of a rewinddir but that. 0 or errno. */
static int directories_seek(const struct view *view, struct directories_stream *stream, off_t offset)
{
    int error = 0;
    if (offset == stream->at && (stream->dir || offset > 0))
        return 0;
    if (stream->dir && offset == 0)
        rewinddir(stream->dir);
    else if (stream->dir)
        seekdir(stream->dir, offset);
    else if (offset == 0) {
        listing_finish(&stream->listing);
        error = -reader_list(view->reader, stream->directory, &stream->listing);
    }
    stream->next = NULL;
    stream->at = offset;
    return error;
}

static void directories_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *file)
{
    struct directories_stream *stream = (struct directories_stream *)(uintptr_t)file->fh;
    char *to = malloc(size);
    if (!to) {
        fuse_reply_err(request, ENOMEM);
        return;
    }
    int error = directories_seek(view_of(request), stream, offset);
    errno = 0;
    const size_t used = error == 0 ? directories_fill(request, stream, to, size) : 0;
    if (error == 0 && used == 0 && !stream->next)
        error = errno;
    if (error)
        fuse_reply_err(request, error);
    else
        fuse_reply_buf(request, to, used);
    free(to);
}

static void directories_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
    directories_end((struct directories_stream *)(uintptr_t)file->fh);
    fuse_reply_err(request, 0);
}

static void directories_fsync(fuse_req_t request, fuse_ino_t number, int data_alone, struct fuse_file_info *file)
{
    const struct directories_stream *stream = (struct directories_stream *)(uintptr_t)file->fh;
    const int fd = stream->dir ? dirfd(stream->dir) : -1; /* what is only read is not written */
    view_reply(request, fd < 0 ? 0 : data_alone ? fdatasync(fd) : fsync(fd));
}

void view_add_directories(struct fuse_lowlevel_ops *operations)
{
    operations->opendir = directories_open;
    operations->readdir = directories_read;
    operations->releasedir = directories_release;
    operations->fsyncdir = directories_fsync;
}
