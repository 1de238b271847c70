/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The same calls by number, through syscall(). */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture.h"
#include "../old_libc.h"

static long raw_opened(long fd)
{
    struct stat st;
    if (fd < 0)
        return -1;
    int flags = fcntl((int)fd, F_GETFL);
    detail_stat(fstat((int)fd, &st), &st);
    if (S_ISREG(st.st_mode) && !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY)
        detail(" wrote %zd", write((int)fd, "raw", 3));
    close((int)fd);
    errno = 0;
    return 0;
}

static long raw_openat(const struct place *place, long flags)
{
    return raw_opened(syscall(SYS_openat, place->at, place->path, flags | O_NONBLOCK, 0642));
}

static long raw_openat2(const struct place *place, long flags)
{
    struct open_how how = {.flags = (uint64_t)flags | O_NONBLOCK, .mode = flags & O_CREAT ? 0642 : 0};
    return raw_opened(syscall(SYS_openat2, place->at, place->path, &how, sizeof how));
}

static long raw_newfstatat(const struct place *place, long flags)
{
    struct stat st;
    return detail_stat(syscall(SYS_newfstatat, place->at, place->path, &st, flags), &st);
}

static long raw_statx(const struct place *place, long flags)
{
    struct statx st;
    long result = syscall(SYS_statx, place->at, place->path, flags, STATX_BASIC_STATS, &st);
    if (result == 0)
        detail(" %06o links %u", st.stx_mode, st.stx_nlink);
    return result;
}

static long raw_faccessat(const struct place *place, long mode)
{
    return syscall(SYS_faccessat, place->at, place->path, mode);
}

static long raw_faccessat2(const struct place *place, long mode)
{
    return syscall(SYS_faccessat2, place->at, place->path, mode, AT_SYMLINK_NOFOLLOW);
}

static long raw_unlinkat(const struct place *place, long flags)
{
    return syscall(SYS_unlinkat, place->at, place->path, flags);
}

static long raw_mkdirat(const struct place *place, long mode)
{
    return syscall(SYS_mkdirat, place->at, place->path, mode);
}

static long raw_mknodat(const struct place *place, long mode)
{
    return syscall(SYS_mknodat, place->at, place->path, mode, 0);
}

static long raw_symlinkat(const struct place *place, long unused)
{
    return syscall(SYS_symlinkat, "raw target", place->at, place->path);
}

static long raw_readlinkat(const struct place *place, long size)
{
    static char target[PATH_MAX];
    long length = syscall(SYS_readlinkat, place->at, place->path, target, size);
    if (length >= 0)
        detail_bytes(target, (size_t)length);
    return length;
}

static long raw_fchmodat(const struct place *place, long mode)
{
    return syscall(SYS_fchmodat, place->at, place->path, mode);
}

static long raw_fchownat(const struct place *place, long flags)
{
    return syscall(SYS_fchownat, place->at, place->path, -1, 5, flags);
}

static long raw_utimensat(const struct place *place, long flags)
{
    const struct timespec times[2] = {{100, 1}, {200, 2}};
    return syscall(SYS_utimensat, place->at, place->path, times, flags);
}

static long raw_truncate(const struct place *place, long length)
{
    return syscall(SYS_truncate, place->path, length);
}

static long raw_statfs(const struct place *place, long unused)
{
    struct statfs fs;
    long result = syscall(SYS_statfs, place->path, &fs);
    if (result == 0)
        detail(" type %lx", (long)fs.f_type);
    return result;
}

static long raw_setxattr(const struct place *place, long unused)
{
    char value[16];
    long result = syscall(SYS_setxattr, place->path, "user.raw", "raw", 3, 0);
    if (result == 0)
        detail(" then %ld", syscall(SYS_getxattr, place->path, "user.raw", value, sizeof value));
    return result;
}

static long raw_renameat2(const struct place *place, long flags)
{
    return syscall(SYS_renameat2, place->at, place->path, AT_FDCWD, joined(fixture.work, "dir/inner"), flags);
}

static long raw_linkat(const struct place *place, long flags)
{
    return syscall(SYS_linkat, place->at, place->path, AT_FDCWD, joined(fixture.work, "bare/linked"), flags);
}

/* Calls of Linux 6.13 and 6.17, by their numbers, which are the same on every machine; older kernels say ENOSYS. */
enum { RAW_SETXATTRAT = 463, RAW_GETXATTRAT, RAW_LISTXATTRAT, RAW_REMOVEXATTRAT, RAW_FILE_GETATTR = 468, RAW_FILE_SETATTR };

struct raw_xattr {
    uint64_t value;
    uint32_t size, flags;
};

static long raw_getxattrat(const struct place *place, long flags)
{
    char value[16];
    struct raw_xattr to = {(uintptr_t)value, sizeof value, 0};
    return syscall(RAW_GETXATTRAT, place->at, place->path, flags, "user.raw", &to, sizeof to);
}

static long raw_setxattrat(const struct place *place, long flags)
{
    char list[256];
    struct raw_xattr from = {(uintptr_t) "raw", 3, 0};
    long result = syscall(RAW_SETXATTRAT, place->at, place->path, flags, "user.raw", &from, sizeof from);
    if (result == 0) {
        detail(" then %ld", raw_getxattrat(place, flags));
        detail(" of %d", syscall(RAW_LISTXATTRAT, place->at, place->path, flags, list, sizeof list) > 0);
        detail(" then %ld", syscall(RAW_REMOVEXATTRAT, place->at, place->path, flags, "user.raw"));
        detail(" then %ld", raw_getxattrat(place, flags));
        errno = 0;
    }
    return result;
}

static long raw_file_getattr(const struct place *place, long flags)
{
    uint64_t attributes[3] = {0};
    return syscall(RAW_FILE_GETATTR, place->at, place->path, attributes, sizeof attributes, flags);
}

static long raw_file_setattr(const struct place *place, long flags)
{
    uint64_t attributes[3] = {0};
    long result = syscall(RAW_FILE_GETATTR, place->at, place->path, attributes, sizeof attributes, flags);
    attributes[0] |= 0x80; /* not to be dumped */
    if (result == 0)
        result = syscall(RAW_FILE_SETATTR, place->at, place->path, attributes, sizeof attributes, flags);
    if (result == 0 && syscall(RAW_FILE_GETATTR, place->at, place->path, attributes, sizeof attributes, flags) == 0)
        detail(" %lx", (long)attributes[0] & 0x80);
    return result;
}

#ifdef SYS_open
static long raw_open(const struct place *place, long flags)
{
    return raw_opened(syscall(SYS_open, place->path, flags | O_NONBLOCK, 0642));
}

static long raw_creat(const struct place *place, long unused)
{
    return raw_opened(syscall(SYS_creat, place->path, 0604));
}

static long raw_stat(const struct place *place, long number)
{
    struct stat st;
    return detail_stat(syscall(number, place->path, &st), &st);
}

static long raw_access(const struct place *place, long mode)
{
    return syscall(SYS_access, place->path, mode);
}

static long raw_one_path(const struct place *place, long number)
{
    return syscall(number, place->path);
}

static long raw_chmod(const struct place *place, long mode)
{
    return syscall(SYS_chmod, place->path, mode);
}

static long raw_mkdir(const struct place *place, long mode)
{
    return syscall(SYS_mkdir, place->path, mode);
}

static long raw_rename(const struct place *place, long unused)
{
    return syscall(SYS_rename, place->path, joined(fixture.work, "bare/renamed"));
}

static long raw_link(const struct place *place, long unused)
{
    return syscall(SYS_link, place->path, joined(fixture.work, "bare/linked"));
}

static long raw_symlink(const struct place *place, long unused)
{
    return syscall(SYS_symlink, "raw target", place->path);
}

/* A path, and times that are none, or cannot be read. */
static long raw_times(const struct place *place, long number)
{
    const struct timeval times[2] = {{100, 1000000}, {200, 0}};
    if (number == SYS_futimesat)
        return syscall(number, place->at, place->path, times);
    return syscall(number, place->path, times);
}

static long raw_wild_times(const struct place *place, long number)
{
    if (number == SYS_futimesat)
        return syscall(number, place->at, place->path, (void *)8);
    return syscall(number, place->path, (void *)8);
}

static const struct call old_calls[] = {
    {"SYS_open(RDONLY)", 0, raw_open, O_RDONLY},
    {"SYS_open(WRONLY|CREAT)", CALL_CHANGES, raw_open, O_WRONLY | O_CREAT},
    {"SYS_creat", CALL_CHANGES | CALL_WAITS, raw_creat, 0},
    {"SYS_stat", 0, raw_stat, SYS_stat},
    {"SYS_lstat", 0, raw_stat, SYS_lstat},
    {"SYS_access(W_OK)", 0, raw_access, W_OK},
    {"SYS_unlink", CALL_CHANGES, raw_one_path, SYS_unlink},
    {"SYS_rmdir", CALL_CHANGES, raw_one_path, SYS_rmdir},
    {"SYS_chmod", CALL_CHANGES, raw_chmod, 0711},
    {"SYS_mkdir", CALL_CHANGES, raw_mkdir, 0711},
    {"SYS_rename", CALL_CHANGES, raw_rename, 0},
    {"SYS_link", CALL_CHANGES, raw_link, 0},
    {"SYS_symlink", CALL_CHANGES, raw_symlink, 0},
    {"SYS_utimes(wrong)", CALL_CHANGES, raw_times, SYS_utimes},
    {"SYS_futimesat(wrong)", CALL_CHANGES | CALL_AT, raw_times, SYS_futimesat},
    {"SYS_utime(wild)", CALL_CHANGES, raw_wild_times, SYS_utime},
    {"SYS_utimes(wild)", CALL_CHANGES, raw_wild_times, SYS_utimes},
    {"SYS_futimesat(wild)", CALL_CHANGES | CALL_AT, raw_wild_times, SYS_futimesat},
};
#endif

static const struct call calls[] = {
    {"SYS_openat(RDONLY)", CALL_AT, raw_openat, O_RDONLY},
    {"SYS_openat(RDWR|CREAT)", CALL_CHANGES | CALL_AT, raw_openat, O_RDWR | O_CREAT},
    {"SYS_openat(WRONLY|CREAT|EXCL)", CALL_CHANGES | CALL_AT, raw_openat, O_WRONLY | O_CREAT | O_EXCL},
    {"SYS_openat2(RDONLY)", CALL_AT, raw_openat2, O_RDONLY},
    {"SYS_openat2(WRONLY|CREAT)", CALL_CHANGES | CALL_AT, raw_openat2, O_WRONLY | O_CREAT},
    {"SYS_newfstatat(0)", CALL_AT, raw_newfstatat, 0},
    {"SYS_newfstatat(NOFOLLOW)", CALL_AT, raw_newfstatat, AT_SYMLINK_NOFOLLOW},
    {"SYS_statx", CALL_AT, raw_statx, 0},
    {"SYS_faccessat(R_OK)", CALL_AT, raw_faccessat, R_OK},
    {"SYS_faccessat2(X_OK,NOFOLLOW)", CALL_AT, raw_faccessat2, X_OK},
    {"SYS_unlinkat(0)", CALL_CHANGES | CALL_AT, raw_unlinkat, 0},
    {"SYS_unlinkat(REMOVEDIR)", CALL_CHANGES | CALL_AT, raw_unlinkat, AT_REMOVEDIR},
    {"SYS_mkdirat", CALL_CHANGES | CALL_AT, raw_mkdirat, 0700},
    {"SYS_mknodat(IFREG)", CALL_CHANGES | CALL_AT, raw_mknodat, S_IFREG | 0600},
    {"SYS_symlinkat", CALL_CHANGES | CALL_AT, raw_symlinkat, 0},
    {"SYS_readlinkat", CALL_AT, raw_readlinkat, PATH_MAX},
    {"SYS_fchmodat", CALL_CHANGES | CALL_AT, raw_fchmodat, 0600},
    {"SYS_fchownat", CALL_CHANGES | CALL_AT, raw_fchownat, 0},
    {"SYS_utimensat(NOFOLLOW)", CALL_CHANGES | CALL_AT, raw_utimensat, AT_SYMLINK_NOFOLLOW},
    {"SYS_truncate", CALL_CHANGES, raw_truncate, 4},
    {"SYS_statfs", 0, raw_statfs, 0},
    {"SYS_setxattr", CALL_CHANGES, raw_setxattr, 0},
    {"SYS_renameat2(0)", CALL_CHANGES | CALL_AT, raw_renameat2, 0},
    {"SYS_renameat2(NOREPLACE)", CALL_CHANGES | CALL_AT, raw_renameat2, RENAME_NOREPLACE},
    {"SYS_renameat2(EXCHANGE)", CALL_CHANGES | CALL_AT, raw_renameat2, RENAME_EXCHANGE},
    {"SYS_linkat", CALL_CHANGES | CALL_AT, raw_linkat, 0},
    {"getxattrat", CALL_AT, raw_getxattrat, 0},
    {"getxattrat(NOFOLLOW)", CALL_AT, raw_getxattrat, AT_SYMLINK_NOFOLLOW},
    {"setxattrat", CALL_CHANGES | CALL_AT, raw_setxattrat, 0},
    {"setxattrat(NOFOLLOW)", CALL_CHANGES | CALL_AT, raw_setxattrat, AT_SYMLINK_NOFOLLOW},
    {"file_getattr", CALL_AT, raw_file_getattr, 0},
    {"file_getattr(NOFOLLOW)", CALL_AT, raw_file_getattr, AT_SYMLINK_NOFOLLOW},
    {"file_setattr", CALL_CHANGES | CALL_AT, raw_file_setattr, 0},
    {"file_setattr(NOFOLLOW)", CALL_CHANGES | CALL_AT, raw_file_setattr, AT_SYMLINK_NOFOLLOW},
};

void part_raw(void)
{
    CASES(calls, false);
#ifdef SYS_open
    CASES(old_calls, false);
#endif
}
