/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/sys.h"
#include "shim/wrap.h"

/* stat and stat64 are one on the machines that sys.h knows; the kernel's structure is theirs too. */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "64-bit Linux only");

static long wrap_stat_there(struct target *to, void *buffer, int flags)
{
    long code = TARGET_LOOK(to, SYS4(SYS_newfstatat, to->real_at, to->real_path, buffer, flags));
    target_done(to);
    return code;
}

static uint64_t wrap_stat_ns_of(struct timespec time)
{
    return (uint64_t)time.tv_sec * CLOCK_SECOND + (uint64_t)time.tv_nsec;
}

/* A directory some of whose files are elsewhere has changed when those did. */
static void wrap_stat_patch_times(struct stat *stat, int at, const char *path, int flags)
{
    uint64_t modified = wrap_stat_ns_of(stat->st_mtim), changed = wrap_stat_ns_of(stat->st_ctim);
    if (directory_times(at, path, flags, stat->st_dev, &modified, &changed) != 1)
        return;
    if (modified != wrap_stat_ns_of(stat->st_mtim)) /* one before 1970 is none of ours */
        stat->st_mtim = clock_split(modified);
    stat->st_ctim = clock_split(changed);
}

static int wrap_stat_patch(int code, struct stat *stat, int at, const char *path, int flags)
{
    if (code != 0 || shim_state.process.count == 0 || !S_ISDIR(stat->st_mode))
        return code;
    int saved = errno;
    if (stat->st_nlink > 2 && directory_is_root(stat->st_dev, stat->st_ino))
        stat->st_nlink--;
    wrap_stat_patch_times(stat, at, path, flags);
    errno = saved;
    return code;
}

#define STAT(AT, PATH, STAT, FLAGS, REAL)                                                                                      \
    wrap_stat_patch((int)WRAPPER_PATH(AT, PATH, wrap_follow(FLAGS), REAL, wrap_stat_there(t, STAT, FLAGS)),                    \
                    (struct stat *)STAT, AT, PATH, FLAGS)

WRAPPER int stat(const char *path, struct stat *to)
{
    WRAPPER_LAUNDER(path);
    return STAT(AT_FDCWD, path, to, 0, REAL(stat)(path, to));
}

WRAPPER int stat64(const char *path, struct stat64 *to)
{
    WRAPPER_LAUNDER(path);
    return STAT(AT_FDCWD, path, to, 0, REAL(stat64)(path, to));
}

WRAPPER int lstat(const char *path, struct stat *to)
{
    WRAPPER_LAUNDER(path);
    return STAT(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW, REAL(lstat)(path, to));
}

WRAPPER int lstat64(const char *path, struct stat64 *to)
{
    WRAPPER_LAUNDER(path);
    return STAT(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW, REAL(lstat64)(path, to));
}

WRAPPER int fstatat(int at, const char *path, struct stat *to, int flags)
{
    WRAPPER_LAUNDER(path);
    return STAT(at, path, to, flags, REAL(fstatat)(at, path, to, flags));
}

WRAPPER int fstatat64(int at, const char *path, struct stat64 *to, int flags)
{
    WRAPPER_LAUNDER(path);
    return STAT(at, path, to, flags, REAL(fstatat64)(at, path, to, flags));
}

/* The versions of programs linked before glibc 2.33. */
int __xstat(int version, const char *path, struct stat *to);
WRAPPER int __xstat(int version, const char *path, struct stat *to)
{
    WRAPPER_LAUNDER(path);
    return STAT(AT_FDCWD, path, to, 0, REAL(__xstat)(version, path, to));
}

int __xstat64(int version, const char *path, struct stat64 *to);
WRAPPER int __xstat64(int version, const char *path, struct stat64 *to)
{
    WRAPPER_LAUNDER(path);
    return STAT(AT_FDCWD, path, to, 0, REAL(__xstat64)(version, path, to));
}

int __lxstat(int version, const char *path, struct stat *to);
WRAPPER int __lxstat(int version, const char *path, struct stat *to)
{
    WRAPPER_LAUNDER(path);
    return STAT(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW, REAL(__lxstat)(version, path, to));
}

int __lxstat64(int version, const char *path, struct stat64 *to);
WRAPPER int __lxstat64(int version, const char *path, struct stat64 *to)
{
    WRAPPER_LAUNDER(path);
    return STAT(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW, REAL(__lxstat64)(version, path, to));
}

int __fxstatat(int version, int at, const char *path, struct stat *to, int flags);
WRAPPER int __fxstatat(int version, int at, const char *path, struct stat *to, int flags)
{
    WRAPPER_LAUNDER(path);
    return STAT(at, path, to, flags, REAL(__fxstatat)(version, at, path, to, flags));
}

int __fxstatat64(int version, int at, const char *path, struct stat64 *to, int flags);
WRAPPER int __fxstatat64(int version, int at, const char *path, struct stat64 *to, int flags)
{
    WRAPPER_LAUNDER(path);
    return STAT(at, path, to, flags, REAL(__fxstatat64)(version, at, path, to, flags));
}

/* Of a descriptor only a directory's times can differ. */
WRAPPER int fstat(int fd, struct stat *to)
{
    int code = process_has_roots() ? (int)wrap_answer(SYS2(SYS_fstat, fd, to)) : REAL(fstat)(fd, to);
    return wrap_stat_patch(code, to, fd, "", AT_EMPTY_PATH);
}

WRAPPER int fstat64(int fd, struct stat64 *to)
{
    int code = process_has_roots() ? (int)wrap_answer(SYS2(SYS_fstat, fd, to)) : REAL(fstat64)(fd, to);
    return wrap_stat_patch(code, (struct stat *)to, fd, "", AT_EMPTY_PATH);
}

/* glibc's own libraries of before 2.34 ask for it by this name; a libc may do without. */
int __fstat64(int fd, struct stat64 *to);
WRAPPER int __fstat64(int fd, struct stat64 *to)
{
    int code =
        process_has_roots() || REAL(__fstat64) == NULL ? (int)wrap_answer(SYS2(SYS_fstat, fd, to)) : REAL(__fstat64)(fd, to);
    return wrap_stat_patch(code, (struct stat *)to, fd, "", AT_EMPTY_PATH);
}

int __fxstat(int version, int fd, struct stat *to);
WRAPPER int __fxstat(int version, int fd, struct stat *to)
{
    process_has_roots();
    return wrap_stat_patch(REAL(__fxstat)(version, fd, to), to, fd, "", AT_EMPTY_PATH);
}

int __fxstat64(int version, int fd, struct stat64 *to);
WRAPPER int __fxstat64(int version, int fd, struct stat64 *to)
{
    process_has_roots();
    return wrap_stat_patch(REAL(__fxstat64)(version, fd, to), (struct stat *)to, fd, "", AT_EMPTY_PATH);
}

static struct timespec wrap_stat_split(struct statx_timestamp time)
{
    return (struct timespec){.tv_sec = time.tv_sec, .tv_nsec = time.tv_nsec};
}

static void wrap_stat_set(struct statx_timestamp *time, uint64_t ns)
{
    time->tv_sec = (int64_t)(ns / CLOCK_SECOND);
    time->tv_nsec = (uint32_t)(ns % CLOCK_SECOND);
}

static void wrap_stat_patch_statx_times(struct statx *stat, int at, const char *path, int flags)
{
    uint64_t modified = wrap_stat_ns_of(wrap_stat_split(stat->stx_mtime)),
             changed = wrap_stat_ns_of(wrap_stat_split(stat->stx_ctime));
    if (directory_times(at, path, flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW), 0, &modified, &changed) != 1)
        return;
    if (modified != wrap_stat_ns_of(wrap_stat_split(stat->stx_mtime)))
        wrap_stat_set(&stat->stx_mtime, modified);
    wrap_stat_set(&stat->stx_ctime, changed);
}

static int wrap_stat_patch_statx(int code, struct statx *stat, int at, const char *path, int flags)
{
    if (code != 0 || shim_state.process.count == 0 || !S_ISDIR(stat->stx_mode))
        return code;
    int saved = errno;
    if (stat->stx_nlink > 2 && directory_is_root(names_device(stat), stat->stx_ino))
        stat->stx_nlink--;
    wrap_stat_patch_statx_times(stat, at, path, flags);
    errno = saved;
    return code;
}

WRAPPER int statx(int at, const char *path, int flags, unsigned mask, struct statx *to)
{
    WRAPPER_LAUNDER(path);
    long code = WRAPPER_PATH(at, path, wrap_follow(flags), REAL(statx)(at, path, flags, mask, to),
                             WRAPPER_LOOK(sys_statx(t->real_at, t->real_path, flags, mask, to)));
    return wrap_stat_patch_statx((int)code, to, at, path, flags);
}
