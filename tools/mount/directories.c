/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Directories that are listed. With attributes that the kernel may not keep, READDIRPLUS would save no lookup: there is none.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "view.h"

struct directories_stream {
    DIR *dir;
    off_t at;            /* where `dir` stands */
    struct dirent *next; /* read, and not yet given */
};

static void directories_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
    char path[VIEW_PATH];
    struct directories_stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        fuse_reply_err(request, ENOMEM);
        return;
    }
    const int fd = open(view_path(view_inode(request, number), path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    stream->dir = fd < 0 ? NULL : fdopendir(fd);
    if (stream->dir) {
        file->fh = (uintptr_t)stream;
        if (fuse_reply_open(request, file) == 0)
            return;
        closedir(stream->dir);
    } else {
        fuse_reply_err(request, errno);
        if (fd >= 0)
            close(fd);
    }
    free(stream);
}

/* 1 with an entry in stream->next, 0 at the end, or -1 with errno. */
static int directories_next(struct directories_stream *stream)
{
    if (stream->next)
        return 1;
    errno = 0;
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

static void directories_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *file)
{
    struct directories_stream *stream = (struct directories_stream *)(uintptr_t)file->fh;
    char *to = malloc(size);
    if (!to) {
        fuse_reply_err(request, ENOMEM);
        return;
    }
    if (offset == 0 && stream->at != 0)
        rewinddir(stream->dir);
    else if (offset != stream->at)
        seekdir(stream->dir, offset);
    if (offset != stream->at || offset == 0)
        stream->next = NULL;
    stream->at = offset;
    errno = 0;
    const size_t used = directories_fill(request, stream, to, size);
    if (used == 0 && errno && !stream->next)
        fuse_reply_err(request, errno);
    else
        fuse_reply_buf(request, to, used);
    free(to);
}

static void directories_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
    struct directories_stream *stream = (struct directories_stream *)(uintptr_t)file->fh;
    closedir(stream->dir);
    free(stream);
    fuse_reply_err(request, 0);
}

static void directories_fsync(fuse_req_t request, fuse_ino_t number, int data_alone, struct fuse_file_info *file)
{
    const int fd = dirfd(((struct directories_stream *)(uintptr_t)file->fh)->dir);
    view_reply(request, data_alone ? fdatasync(fd) : fsync(fd));
}

void view_add_directories(struct fuse_lowlevel_ops *operations)
{
    operations->opendir = directories_open;
    operations->readdir = directories_read;
    operations->releasedir = directories_release;
    operations->fsyncdir = directories_fsync;
}
