/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "shim/wrap.h"
#include "shim/wrap_directory.h"
#include "shim/root_of.h"
#include "shim/dir_stream.h"

_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "64-bit Linux only");

static struct dir_stream *wrap_directory_ours(DIR *stream)
{
    return (struct dir_stream *)stream;
}

/* A file in a branch is not where libc looks, and is no directory either: the kernel would say so. A directory that the index
 * knows is one that this node's kernel has not heard of yet: it is asked once more. */
static int wrap_directory_open_known(struct target *t)
{
    const int code = target_settled(t);
    if (code != 0)
        return code;
    return target_is_away(t)
               ? -ENOTDIR
               : (int)TARGET_CALL(t, sys_openat(t->real_at, t->real_path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC, 0));
}

/* A directory of the union is a real directory: libc has opened it, or has failed. */
static __attribute__((noinline)) DIR *wrap_directory_open_again(int at, const char *path)
{
    struct target t;
    int saved = errno;
    int how = saved == ENOENT && !target_is_dead_end(at, path, TARGET_FOLLOW) ? target_find_alias(&t, at, path, TARGET_FOLLOW)
                                                                              : TARGET_FOREIGN;
    int code = how < 0 ? how : -saved;
    if (how == TARGET_MANAGED) {
        code = wrap_directory_open_known(&t);
        target_done(&t);
    }
    DIR *stream = code >= 0 ? fdopendir(code) : NULL;
    if (stream == NULL && code >= 0) {
        saved = errno;
        sys_close(code);
    }
    errno = code < 0 ? -code : saved;
    return stream;
}

WRAPPER DIR *opendir(const char *path)
{
    WRAPPER_LAUNDER(path);
    if (!process_has_roots())
        return REAL(opendir)(path);
    DIR *stream = REAL(opendir)(path);
    if (stream == NULL)
        return wrap_directory_open_again(AT_FDCWD, path);
    return dead_end_is_beside_roots(REAL(dirfd)(stream), path) ? stream : dir_stream_over(stream);
}

/* What O_PATH gave cannot be read. */
static bool wrap_directory_is_only_a_path(int fd)
{
    return SYS3(SYS_fcntl, fd, F_GETFL, 0) & O_PATH;
}

/* On failure the descriptor stays the caller's, so what libc's stream would close is a duplicate. */
WRAPPER DIR *fdopendir(int fd)
{
    struct names_root *root;
    struct dirid id;
    if (wrap_directory_is_only_a_path(fd))
        return REAL(fdopendir)(fd);
    int code = root_of_directory(fd, "", AT_EMPTY_PATH, &root, &id, NULL);
    if (code < 0 && !dir_stream_finds_removed(code, fd))
        return wrap_answer(code), NULL;
    DIR *stream = REAL(fdopendir)(fd);
    if (code == 1 && stream != NULL) {
        sys_lseek(fd, 0, SEEK_SET);
        stream = dir_stream_over(stream);
    }
    return stream;
}

WRAPPER struct dirent *readdir(DIR *stream)
{
    if (!dir_stream_is_ours(stream))
        return process_has_roots(), REAL(readdir)(stream);
    return (struct dirent *)dir_stream_next(wrap_directory_ours(stream));
}

WRAPPER struct dirent64 *readdir64(DIR *stream)
{
    if (!dir_stream_is_ours(stream))
        return process_has_roots(), REAL(readdir64)(stream);
    return dir_stream_next(wrap_directory_ours(stream));
}

static int wrap_directory_next_into(struct dir_stream *stream, struct dirent64 *entry, struct dirent64 **result)
{
    int saved = errno;
    errno = 0;
    struct dirent64 *next = dir_stream_next(stream);
    int error = errno;
    errno = saved;
    *result = next != NULL ? entry : NULL;
    if (next != NULL)
        memcpy(entry, next, next->d_reclen < sizeof *entry ? next->d_reclen : sizeof *entry);
    return next != NULL ? 0 : error;
}

WRAPPER int readdir_r(DIR *stream, struct dirent *entry, struct dirent **result)
{
    if (!dir_stream_is_ours(stream))
        return process_has_roots(), REAL(readdir_r)(stream, entry, result);
    return wrap_directory_next_into(wrap_directory_ours(stream), (struct dirent64 *)entry, (struct dirent64 **)result);
}

WRAPPER int readdir64_r(DIR *stream, struct dirent64 *entry, struct dirent64 **result)
{
    if (!dir_stream_is_ours(stream))
        return process_has_roots(), REAL(readdir64_r)(stream, entry, result);
    return wrap_directory_next_into(wrap_directory_ours(stream), entry, result);
}

WRAPPER long telldir(DIR *stream)
{
    if (!dir_stream_is_ours(stream))
        return process_has_roots(), REAL(telldir)(stream);
    return (long)wrap_directory_ours(stream)->told;
}

WRAPPER void seekdir(DIR *stream, long position)
{
    if (!dir_stream_is_ours(stream)) {
        process_has_roots();
        REAL(seekdir)(stream, position);
        return;
    }
    wrap_directory_ours(stream)->at.position = wrap_directory_ours(stream)->told = (uint64_t)position;
    wrap_directory_ours(stream)->next = wrap_directory_ours(stream)->filled = 0;
}

WRAPPER void rewinddir(DIR *stream)
{
    if (!dir_stream_is_ours(stream)) {
        process_has_roots();
        REAL(rewinddir)(stream);
        return;
    }
    seekdir(stream, 0);
}

WRAPPER int closedir(DIR *stream)
{
    if (!dir_stream_is_ours(stream))
        return process_has_roots(), REAL(closedir)(stream);
    DIR *libc = wrap_directory_ours(stream)->libc;
    dir_stream_free(wrap_directory_ours(stream));
    return REAL(closedir)(libc);
}

WRAPPER int dirfd(DIR *stream)
{
    if (!dir_stream_is_ours(stream))
        return process_has_roots(), REAL(dirfd)(stream);
    return wrap_directory_ours(stream)->at.fd;
}

/* scandir, over our own streams: entries are kept as malloc'ed copies, which the caller frees. */
struct kept {
    struct dirent64 **names;
    size_t count, room;
};

static void wrap_directory_drop_kept(struct kept *kept)
{
    while (kept->count > 0)
        free(kept->names[--kept->count]);
    free(kept->names);
}

static bool wrap_directory_keep(struct kept *kept, const struct dirent64 *entry)
{
    if (kept->count == kept->room) {
        size_t room = kept->room > 0 ? kept->room * 2 : 32;
        struct dirent64 **names = realloc(kept->names, room * sizeof *names);
        if (names == NULL)
            return false;
        kept->names = names;
        kept->room = room;
    }
    struct dirent64 *copy = malloc(entry->d_reclen);
    if (copy == NULL)
        return false;
    kept->names[kept->count++] = memcpy(copy, entry, entry->d_reclen);
    return true;
}

static int wrap_directory_scan(struct dir_stream *stream, struct dirent64 ***names, shim_filter64 *filter, shim_order64 *order)
{
    struct kept kept = {0};
    struct dirent64 *entry;
    int saved = errno;
    errno = 0;
    while ((entry = dir_stream_next(stream)) != NULL) {
        int wanted = filter == NULL || filter(entry);
        errno = 0; /* whatever the filter left there */
        if (wanted && !wrap_directory_keep(&kept, entry)) {
            errno = ENOMEM;
            break;
        }
    }
    int error = errno;
    closedir((DIR *)stream);
    if (error != 0) {
        wrap_directory_drop_kept(&kept);
        errno = error;
        return -1;
    }
    if (order != NULL && kept.count > 0)
        qsort(kept.names, kept.count, sizeof *kept.names, (int (*)(const void *, const void *))order);
    *names = kept.names;
    errno = saved;
    return (int)kept.count;
}

/* Ours if it is a directory under a root: 1 and *stream, 0, or -1 with errno. Another directory may be there by now (-ESTALE):
 * that one is opened. */
static int wrap_directory_open_ours(int at, const char *path, DIR **stream)
{
    struct names_root *root;
    struct dirid id;
    int code = path != NULL ? root_of_directory(at, path, 0, &root, &id, NULL) : 0;
    if (code <= 0 && code != -ESTALE)
        return code < 0 ? (int)wrap_answer(code) : 0;
    int fd = sys_openat(at, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0)
        return (int)wrap_answer(fd);
    *stream = fdopendir(fd);
    if (*stream == NULL)
        sys_close(fd);
    return *stream == NULL ? -1 : dir_stream_is_ours(*stream) ? 1 : (closedir(*stream), 0);
}

/* libc has not found it: 1 and *stream, or -1 with errno. */
static int wrap_directory_open_ours_again(int at, const char *path, DIR **stream)
{
    *stream = wrap_directory_open_again(at, path);
    if (*stream == NULL || dir_stream_is_ours(*stream))
        return *stream != NULL ? 1 : -1;
    closedir(*stream); /* it is no root's any more */
    errno = ENOENT;
    return -1;
}

#define SCAN(AT, PATH, NAMES, FILTER, ORDER, REAL)                                                                             \
    DIR *stream;                                                                                                               \
    int how = wrap_directory_open_ours(AT, PATH, &stream);                                                                     \
    if (how == 0) {                                                                                                            \
        how = REAL;                                                                                                            \
        if (how >= 0 || !process_has_roots())                                                                                  \
            return how;                                                                                                        \
        how = wrap_directory_open_ours_again(AT, PATH, &stream);                                                               \
    }                                                                                                                          \
    return how < 0 ? -1                                                                                                        \
                   : wrap_directory_scan(wrap_directory_ours(stream), (struct dirent64 ***)(NAMES), (shim_filter64 *)(FILTER), \
                                         (shim_order64 *)(ORDER))

WRAPPER int scandir(const char *restrict path, struct dirent ***restrict names, shim_filter *filter, shim_order *order)
{
    WRAPPER_LAUNDER(path);
    SCAN(AT_FDCWD, path, names, filter, order, REAL(scandir)(path, names, filter, order));
}

WRAPPER int scandir64(const char *restrict path, struct dirent64 ***restrict names, shim_filter64 *filter, shim_order64 *order)
{
    WRAPPER_LAUNDER(path);
    SCAN(AT_FDCWD, path, names, filter, order, REAL(scandir64)(path, names, filter, order));
}

WRAPPER int scandirat(int at, const char *restrict path, struct dirent ***restrict names, shim_filter *filter,
                      shim_order *order)
{
    WRAPPER_LAUNDER(path);
    SCAN(at, path, names, filter, order, REAL(scandirat)(at, path, names, filter, order));
}

WRAPPER int scandirat64(int at, const char *restrict path, struct dirent64 ***restrict names, shim_filter64 *filter,
                        shim_order64 *order)
{
    WRAPPER_LAUNDER(path);
    SCAN(at, path, names, filter, order, REAL(scandirat64)(at, path, names, filter, order));
}

/* Reading a descriptor: the position is the kernel's own file offset, so it is shared by dup and fork as it
 * should be, and nothing is remembered here. */
long wrap_getdents64(int fd, void *buffer, size_t size)
{
    struct listing_at at = {.fd = fd};
    int code = root_of_directory(fd, "", AT_EMPTY_PATH, &at.root, &at.id, NULL);
    if (code == 0 || dir_stream_finds_removed(code, fd))
        return sys_getdents64(fd, buffer, size);
    if (code < 0)
        return code;
    off_t offset = sys_lseek(fd, 0, SEEK_CUR);
    if (offset < 0)
        return offset;
    at.position = (uint64_t)offset;
    const size_t room = process_writable(buffer, size);
    long filled = dir_stream_fill(&at, buffer, room);
    if (filled == -EINVAL && room < size)
        return -EFAULT;
    if (filled > 0) {
        offset = sys_lseek(fd, (off_t)at.position, SEEK_SET);
        if (offset < 0)
            return offset;
    }
    return filled;
}

WRAPPER ssize_t getdents64(int fd, void *buffer, size_t size)
{
    if (!process_has_roots())
        return REAL(getdents64)(fd, buffer, size);
    return wrap_answer(wrap_getdents64(fd, buffer, size));
}

WRAPPER ssize_t getdirentries(int fd, char *restrict buffer, size_t size, off_t *restrict base)
{
    if (!process_has_roots())
        return REAL(getdirentries)(fd, buffer, size, base);
    off_t before = sys_lseek(fd, 0, SEEK_CUR);
    long filled = wrap_getdents64(fd, buffer, size);
    if (filled >= 0)
        *base = before;
    return wrap_answer(filled);
}

WRAPPER ssize_t getdirentries64(int fd, char *restrict buffer, size_t size, off64_t *restrict base)
{
    return getdirentries(fd, buffer, size, base);
}
