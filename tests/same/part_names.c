/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The calls that make and remove one name. */
#include "same.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fixture.h"
#include "../old_libc.h"

static const char *const targets[] = {"dir", "file", "nowhere at all", "/", ""};

static long by_unlink(const struct place *place, long unused)
{
    return unlink(place->path);
}

static long by_unlinkat(const struct place *place, long flags)
{
    return unlinkat(place->at, place->path, (int)flags);
}

static long by_remove(const struct place *place, long unused)
{
    return remove(place->path);
}

static long by_rmdir(const struct place *place, long unused)
{
    return rmdir(place->path);
}

static long by_mkdir(const struct place *place, long mode)
{
    return mkdir(place->path, (mode_t)mode);
}

static long by_mkdirat(const struct place *place, long mode)
{
    return mkdirat(place->at, place->path, (mode_t)mode);
}

static long by_mkfifo(const struct place *place, long mode)
{
    return mkfifo(place->path, (mode_t)mode);
}

static long by_mkfifoat(const struct place *place, long mode)
{
    return mkfifoat(place->at, place->path, (mode_t)mode);
}

static long by_mknod(const struct place *place, long mode)
{
    return mknod(place->path, (mode_t)mode, S_ISCHR(mode) ? makedev(1, 3) : 0);
}

static long by_mknodat(const struct place *place, long mode)
{
    return mknodat(place->at, place->path, (mode_t)mode, 0);
}

static long by_xmknod(const struct place *place, long mode)
{
    dev_t device = 0;
    int (*call)(int, const char *, mode_t, dev_t *) = dlsym(RTLD_DEFAULT, "__xmknod");
    return call(0, place->path, (mode_t)mode, &device);
}

static long by_symlink(const struct place *place, long target)
{
    return symlink(targets[target], place->path);
}

static long by_symlinkat(const struct place *place, long target)
{
    return symlinkat(targets[target], place->at, place->path);
}

/* A file that is open lives on without its name, and its name can be used again. */
static long by_unlink_open(const struct place *place, long unused)
{
    struct stat st;
    int fd = open(place->path, O_RDWR | O_CREAT | O_NONBLOCK, 0644);
    if (fd < 0)
        return -1;
    long removed = unlink(place->path);
    detail(" unlinked %ld wrote %zd", removed, write(fd, "after", 5));
    fstat(fd, &st);
    detail(" links %u size %lld", (unsigned)st.st_nlink, (long long)st.st_size);
    close(fd);
    fd = open(place->path, O_WRONLY | O_CREAT | O_EXCL, 0604);
    detail(" again %s", fd < 0 ? strerrorname_np(errno) : "made");
    if (fd >= 0)
        close(fd);
    return removed;
}

static const struct call calls[] = {
    {"unlink", CALL_CHANGES, by_unlink, 0},
    {"unlinkat(0)", CALL_CHANGES | CALL_AT, by_unlinkat, 0},
    {"unlinkat(REMOVEDIR)", CALL_CHANGES | CALL_AT, by_unlinkat, AT_REMOVEDIR},
    {"unlinkat(wrong flag)", CALL_CHANGES | CALL_AT, by_unlinkat, 0x40000000},
    {"remove", CALL_CHANGES, by_remove, 0},
    {"rmdir", CALL_CHANGES, by_rmdir, 0},
    {"mkdir(0755)", CALL_CHANGES, by_mkdir, 0755},
    {"mkdir(01777)", CALL_CHANGES, by_mkdir, 01777},
    {"mkdirat(0700)", CALL_CHANGES | CALL_AT, by_mkdirat, 0700},
    {"mkfifo", CALL_CHANGES, by_mkfifo, 0666},
    {"mkfifo(IFIFO)", CALL_CHANGES, by_mkfifo, S_IFIFO | 0666},
    {"mkfifo(IFREG)", CALL_CHANGES, by_mkfifo, S_IFREG | 0666},
    {"mkfifoat(IFMT)", CALL_CHANGES | CALL_AT, by_mkfifoat, S_IFMT | 0666},
    {"mkfifoat", CALL_CHANGES | CALL_AT, by_mkfifoat, 0600},
    {"mknod(IFREG)", CALL_CHANGES, by_mknod, S_IFREG | 0644},
    {"mknod(no type)", CALL_CHANGES, by_mknod, 0640},
    {"mknod(IFIFO)", CALL_CHANGES, by_mknod, S_IFIFO | 0644},
    {"mknod(IFSOCK)", CALL_CHANGES, by_mknod, S_IFSOCK | 0644},
    {"mknod(IFCHR)", CALL_CHANGES, by_mknod, S_IFCHR | 0644},
    {"mknod(IFDIR)", CALL_CHANGES, by_mknod, S_IFDIR | 0644},
    {"mknod(wrong type)", CALL_CHANGES, by_mknod, S_IFMT | 0644},
    {"mknodat(IFREG)", CALL_CHANGES | CALL_AT, by_mknodat, S_IFREG | 0600},
    {"__xmknod(IFREG)", CALL_CHANGES, by_xmknod, S_IFREG | 0604},
    {"symlink(dir)", CALL_CHANGES, by_symlink, 0},
    {"symlink(nowhere)", CALL_CHANGES, by_symlink, 2},
    {"symlink(\"\")", CALL_CHANGES, by_symlink, 4},
    {"symlinkat(file)", CALL_CHANGES | CALL_AT, by_symlinkat, 1},
    {"symlinkat(/)", CALL_CHANGES | CALL_AT, by_symlinkat, 3},
    {"open, unlink, open", CALL_CHANGES, by_unlink_open, 0},
};

/* Of a link's text the length is checked before anything else. */
static void symlink_lengths(void)
{
    static char text[PATH_MAX + 2];
    for (size_t length = PATH_MAX - 2; length <= PATH_MAX; length++) {
        char where[64];
        if (!case_is_due())
            continue;
        memset(text, 'a', length);
        text[length] = '\0';
        snprintf(where, sizeof where, "%zu bytes", length);
        errno = 0;
        long result = symlink(text, joined(fixture.work, "long-link"));
        case_told("symlink", where, result, errno, true);
    }
}

void part_names(void)
{
    CASES(calls, false);
    symlink_lengths();
}
