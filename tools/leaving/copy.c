/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "leaving/copy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cli/stopping.h"
#include "union/attributes.h"
#include "union/disk.h"
#include "union/layout.h"

#define CHUNK (1 << 20) /* after that much it is looked whether to stop */

struct copy {
    int leaf;
    const char *original; /* in the leaf */
    int directory;
    const char *name; /* there */
    int from, to;
    char called[LAYOUT_UNFINISHED + 1]; /* the copy until it is whole */
    struct statx before;                /* the original */
    char *buffer;                       /* CHUNK bytes */
};

static int copy_look(int fd, struct statx *stat)
{
    return sys_statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, stat);
}

/* O_NONBLOCK: a FIFO in its place must not hold us. */
static int copy_open_original(struct copy *copy)
{
    copy->from = sys_openat(copy->leaf, copy->original, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (copy->from < 0)
        return copy->from;
    int error = copy_look(copy->from, &copy->before);
    if (error < 0)
        return error;
    if (!S_ISREG(copy->before.stx_mode))
        return -EINVAL;
    return copy->before.stx_nlink > 1 ? COPY_LINKED : 0;
}

/* What is made in an append-only directory stays there: the copy could not go, nor the file if the rest failed. */
static int copy_check_directory(const struct copy *copy)
{
    return disk_is_fixed(copy->directory, "") ? -EPERM : 0;
}

/* One that is there already was left by an export that was killed: the holder of the root is alone. */
static int copy_open_copy(struct copy *copy)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    struct text t;
    text_init(&t, copy->called, sizeof copy->called);
    layout_copy(&t, copy->before.stx_ino);
    copy->to = sys_openat(copy->directory, copy->called, flags, 0600);
    if (copy->to == -EEXIST && sys_unlinkat(copy->directory, copy->called, 0) == 0)
        copy->to = sys_openat(copy->directory, copy->called, flags, 0600);
    return copy->to < 0 ? copy->to : 0;
}

static ssize_t copy_read_at(int fd, void *to, size_t size, off_t at)
{
    ssize_t got;
    do
        got = SYS4(SYS_pread64, fd, to, size, at);
    while (got == -EINTR);
    return got;
}

static int copy_write_at(int fd, const char *from, size_t size, off_t at)
{
    while (size > 0) {
        ssize_t wrote = SYS4(SYS_pwrite64, fd, from, size, at);
        if (wrote == -EINTR)
            continue;
        if (wrote <= 0)
            return wrote < 0 ? (int)wrote : -EIO;
        from += wrote;
        size -= (size_t)wrote;
        at += wrote;
    }
    return 0;
}

/* How much of it was copied: 0 at the end of the original, or -errno. */
static ssize_t copy_some(const struct copy *copy, off_t at, size_t size)
{
    off_t from = at, to = at;
    ssize_t some = SYS6(SYS_copy_file_range, copy->from, &from, copy->to, &to, size, 0);
    if (some > 0)
        return some;
    /* Two file systems, or one that cannot do it for us; 0 is also what some of them say wrongly. */
    if (some < 0 && some != -EXDEV && some != -EINVAL && some != -ENOSYS && some != -EOPNOTSUPP)
        return some;
    some = copy_read_at(copy->from, copy->buffer, size, at);
    int error = some > 0 ? copy_write_at(copy->to, copy->buffer, (size_t)some, at) : 0;
    return error < 0 ? error : some;
}

static int copy_extent(const struct copy *copy, off_t at, off_t end)
{
    while (at < end) {
        if (stopping())
            return -EINTR;
        size_t size = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        ssize_t some = copy_some(copy, at, size);
        if (some <= 0)
            return some < 0 ? (int)some : COPY_CHANGED;
        at += some;
    }
    return 0;
}

/* Where data begins at or after `at`; `end` if there is none. A file system without holes is all data. */
static off_t copy_next_data(int fd, off_t at, off_t end)
{
    off_t data = sys_lseek(fd, at, SEEK_DATA);
    return data == -ENXIO ? end : data < 0 ? at : data;
}

static off_t copy_next_hole(int fd, off_t at, off_t end)
{
    off_t hole = sys_lseek(fd, at, SEEK_HOLE);
    return hole < 0 || hole > end ? end : hole;
}

static int copy_data(struct copy *copy)
{
    off_t end = (off_t)copy->before.stx_size;
    int error = (int)SYS2(SYS_ftruncate, copy->to, end);
    for (off_t at = copy_next_data(copy->from, 0, end), hole; error == 0 && at < end;
         at = copy_next_data(copy->from, hole, end)) {
        hole = copy_next_hole(copy->from, at, end);
        error = copy_extent(copy, at, hole);
    }
    return error;
}

/* The owner first: changing it takes away set-user-ID bits and capabilities. The times last. */
static int copy_attributes(struct copy *copy)
{
    const struct statx *before = &copy->before;
    const struct timespec times[2] = {{before->stx_atime.tv_sec, before->stx_atime.tv_nsec},
                                      {before->stx_mtime.tv_sec, before->stx_mtime.tv_nsec}};
    char proc[DISK_PROC_SIZE];
    struct statx now;
    int error = copy_look(copy->to, &now);
    if (error == 0 && (now.stx_uid != before->stx_uid || now.stx_gid != before->stx_gid))
        error = sys_fchownat(copy->to, "", before->stx_uid, before->stx_gid, AT_EMPTY_PATH);
    if (error < 0)
        return error == -EPERM ? COPY_UNLIKE : error;
    disk_proc(proc, copy->from);
    error = attributes_copy(proc, copy->to, false);
    if (error != 0)
        return error < 0 ? error : COPY_UNLIKE;
    error = sys_fchmod(copy->to, before->stx_mode & 07777);
    return error < 0 ? error : sys_utimensat(copy->to, NULL, times, 0);
}

static int copy_check_attributes(struct copy *copy)
{
    const struct statx *before = &copy->before;
    struct statx now;
    int error = copy_look(copy->to, &now);
    if (error < 0)
        return error;
    return now.stx_uid == before->stx_uid && now.stx_gid == before->stx_gid &&
                   (now.stx_mode & 07777) == (before->stx_mode & 07777)
               ? 0
               : COPY_UNLIKE;
}

static int copy_hash_some(XXH3_state_t *state, int fd, char *buffer, off_t at, size_t size)
{
    while (size > 0) {
        ssize_t some = copy_read_at(fd, buffer, size, at);
        if (some <= 0)
            return some < 0 ? (int)some : COPY_DIFFERS;
        XXH3_128bits_update(state, buffer, (size_t)some);
        at += some;
        size -= (size_t)some;
    }
    return 0;
}

/* Where both have a hole there is nothing to compare. */
static int copy_hash_both(const struct copy *copy, XXH3_state_t *original, XXH3_state_t *made)
{
    off_t end = (off_t)copy->before.stx_size;
    int error = 0;
    for (off_t at = 0; at < end && error == 0;) {
        off_t from = copy_next_data(copy->from, at, end), to = copy_next_data(copy->to, at, end);
        at = from < to ? from : to;
        size_t size = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        error = stopping() ? -EINTR : copy_hash_some(original, copy->from, copy->buffer, at, size);
        if (error == 0)
            error = copy_hash_some(made, copy->to, copy->buffer, at, size);
        at += (off_t)size;
    }
    return error;
}

/* What is on disk, not what is remembered of it, as far as the file system lets go of its pages. */
static int copy_verify(struct copy *copy)
{
    XXH3_state_t original, made;
    SYS4(SYS_fadvise64, copy->to, 0, 0, POSIX_FADV_DONTNEED);
    XXH3_128bits_reset(&original);
    XXH3_128bits_reset(&made);
    int error = copy_hash_both(copy, &original, &made);
    if (error != 0)
        return error;
    return XXH128_isEqual(XXH3_128bits_digest(&original), XXH3_128bits_digest(&made)) ? 0 : COPY_DIFFERS;
}

static bool copy_is_same_time(struct statx_timestamp a, struct statx_timestamp b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static int copy_check_original(struct copy *copy)
{
    struct statx now;
    int error = copy_look(copy->from, &now);
    if (error < 0)
        return error;
    bool same = copy_is_same_time(now.stx_ctime, copy->before.stx_ctime) && now.stx_size == copy->before.stx_size;
    return same ? 0 : COPY_CHANGED;
}

static int copy_sync_copy(struct copy *copy)
{
    return (int)SYS1(SYS_fsync, copy->to);
}

/* The original goes only when the name of the copy is on disk. A directory that may not be read is synced
 * with all. */
static int copy_sync_name(const struct copy *copy)
{
    int fd = disk_reopen(copy->directory);
    if (fd < 0)
        return (int)SYS1(SYS_syncfs, copy->to);
    int error = (int)SYS1(SYS_fsync, fd);
    sys_close(fd);
    return error;
}

static int copy_place(struct copy *copy)
{
    int error = sys_linkat(copy->directory, copy->called, copy->directory, copy->name, 0);
    if (error < 0)
        return error;
    error = copy_sync_name(copy);
    if (error == 0)
        error = sys_unlinkat(copy->leaf, copy->original, 0);
    if (error < 0)
        sys_unlinkat(copy->directory, copy->name, 0);
    return error;
}

static int copy_carry_out(struct copy *copy)
{
    static int (*const steps[])(struct copy *) = {
        copy_data, copy_attributes, copy_sync_copy, copy_verify, copy_check_attributes, copy_check_original, copy_place};
    int error = copy_open_copy(copy);
    if (error < 0)
        return error;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && error == 0; i++)
        error = steps[i](copy);
    int removed = sys_unlinkat(copy->directory, copy->called, 0);
    return error == 0 ? removed : error;
}

int copy_into(int leaf, const char *original, int directory, const char *name)
{
    struct copy copy = {.leaf = leaf, .original = original, .directory = directory, .name = name, .from = -1, .to = -1};
    int error = copy_check_directory(&copy);
    if (error == 0)
        error = copy_open_original(&copy);
    if (error == 0 && !(copy.buffer = malloc(CHUNK)))
        error = -ENOMEM;
    if (error == 0)
        error = copy_carry_out(&copy);
    if (copy.from >= 0)
        sys_close(copy.from);
    if (copy.to >= 0)
        sys_close(copy.to);
    free(copy.buffer);
    return error;
}

const char *copy_words(enum copy_refusal refusal)
{
    static const char *const words[] = {
        [COPY_LINKED] = "has other hard links, which a copy would not share (copy it by hand)",
        [COPY_UNLIKE] = "its owner, mode, ACL or attributes cannot be copied (copy it by hand)",
        [COPY_CHANGED] = "changed while it was copied (stop the program that writes there and run this again)",
        [COPY_DIFFERS] = "the copy differs from the original when it is read back (check the file system)",
    };
    return words[refusal];
}
