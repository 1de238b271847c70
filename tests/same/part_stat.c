/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What can be asked of a name: the stat and access families, readlink, statfs. */
#include "same.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fixture.h"

static long by_stat(const struct place *place, long unused)
{
    struct stat st;
    return detail_stat(stat(place->path, &st), &st);
}

static long by_lstat(const struct place *place, long unused)
{
    struct stat st;
    return detail_stat(lstat(place->path, &st), &st);
}

static long by_fstatat(const struct place *place, long flags)
{
    struct stat st;
    return detail_stat(fstatat(place->at, place->path, &st, (int)flags), &st);
}

static long detail_stat64(long result, const struct stat64 *st)
{
    return detail_stat(result, (const struct stat *)st);
}

static long by_stat64(const struct place *place, long unused)
{
    struct stat64 st;
    return detail_stat64(stat64(place->path, &st), &st);
}

static long by_lstat64(const struct place *place, long unused)
{
    struct stat64 st;
    return detail_stat64(lstat64(place->path, &st), &st);
}

static long by_fstatat64(const struct place *place, long flags)
{
    struct stat64 st;
    return detail_stat64(fstatat64(place->at, place->path, &st, (int)flags), &st);
}

static long by_statx(const struct place *place, long flags)
{
    struct statx st;
    long result = statx(place->at, place->path, (int)flags, STATX_BASIC_STATS | STATX_BTIME, &st);
    if (result < 0)
        return result;
    detail(" mask %x attributes %llx %06o links %u owner %u:%u", st.stx_mask, (unsigned long long)st.stx_attributes,
           st.stx_mode, st.stx_nlink, st.stx_uid, st.stx_gid);
    if (!S_ISDIR(st.stx_mode))
        detail(" size %llu", (unsigned long long)st.stx_size);
    return result;
}

/* Programs built before glibc 2.33 call these; no header declares them, and no linker finds them. The version of struct stat
 * that they were built with: x86_64 had another one before. */
#if defined(__x86_64__)
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif

static long by_xstat(const struct place *place, long links)
{
    struct stat st;
    int (*call)(int, const char *, struct stat *) = dlsym(RTLD_DEFAULT, links ? "__lxstat" : "__xstat");
    return detail_stat(call(STAT_VERSION, place->path, &st), &st);
}

static long by_xstat64(const struct place *place, long links)
{
    struct stat st;
    int (*call)(int, const char *, struct stat *) = dlsym(RTLD_DEFAULT, links ? "__lxstat64" : "__xstat64");
    return detail_stat(call(STAT_VERSION, place->path, &st), &st);
}

static long by_fxstatat(const struct place *place, long flags)
{
    struct stat st;
    int (*call)(int, int, const char *, struct stat *, int) = dlsym(RTLD_DEFAULT, "__fxstatat");
    return detail_stat(call(STAT_VERSION, place->at, place->path, &st, (int)flags), &st);
}

static long by_access(const struct place *place, long mode)
{
    return access(place->path, (int)mode);
}

static long by_faccessat(const struct place *place, long mode)
{
    return faccessat(place->at, place->path, (int)mode & 7, (int)mode & ~7);
}

static long by_eaccess(const struct place *place, long mode)
{
    return eaccess(place->path, (int)mode);
}

static long by_euidaccess(const struct place *place, long mode)
{
    return euidaccess(place->path, (int)mode);
}

static long by_readlink(const struct place *place, long size)
{
    static char target[PATH_MAX];
    ssize_t length = readlink(place->path, target, (size_t)size);
    if (length >= 0)
        detail_bytes(target, (size_t)length);
    return length;
}

static long by_readlinkat(const struct place *place, long size)
{
    static char target[PATH_MAX];
    ssize_t length = readlinkat(place->at, place->path, target, (size_t)size);
    if (length >= 0)
        detail_bytes(target, (size_t)length);
    return length;
}

static long by_statfs(const struct place *place, long unused)
{
    struct statfs fs;
    long result = statfs(place->path, &fs);
    if (result == 0)
        detail(" type %lx names %ld block %ld flags %lx", (long)fs.f_type, (long)fs.f_namelen, (long)fs.f_bsize,
               (long)fs.f_flags);
    return result;
}

static long by_statvfs(const struct place *place, long unused)
{
    struct statvfs fs;
    long result = statvfs(place->path, &fs);
    if (result == 0)
        detail(" names %lu block %lu flags %lx", fs.f_namemax, fs.f_bsize, fs.f_flag);
    return result;
}

/* One file has one inode number, however it is asked for; another file has another. */
static long by_identity(const struct place *place, long unused)
{
    struct stat by_path, by_fd;
    struct statx extended;
    int fd = open(place->path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return -1;
    long result = stat(place->path, &by_path) | fstat(fd, &by_fd) | statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended);
    detail(" inode %s, extended %s, device %s, change time %s", by_path.st_ino == by_fd.st_ino ? "agrees" : "differs",
           by_path.st_ino == extended.stx_ino ? "agrees" : "differs", by_path.st_dev == by_fd.st_dev ? "agrees" : "differs",
           by_path.st_ctim.tv_nsec == by_fd.st_ctim.tv_nsec ? "agrees" : "differs");
    close(fd);
    return result;
}

static const struct call calls[] = {
    {"stat", 0, by_stat, 0},
    {"lstat", 0, by_lstat, 0},
    {"fstatat(0)", CALL_AT, by_fstatat, 0},
    {"fstatat(NOFOLLOW)", CALL_AT, by_fstatat, AT_SYMLINK_NOFOLLOW},
    {"fstatat(EMPTY_PATH)", CALL_AT, by_fstatat, AT_EMPTY_PATH},
    {"fstatat(wrong flag)", CALL_AT, by_fstatat, 0x40000000},
    {"stat64", 0, by_stat64, 0},
    {"lstat64", 0, by_lstat64, 0},
    {"fstatat64(NO_AUTOMOUNT)", CALL_AT, by_fstatat64, AT_NO_AUTOMOUNT},
    {"statx(0)", CALL_AT, by_statx, 0},
    {"statx(NOFOLLOW)", CALL_AT, by_statx, AT_SYMLINK_NOFOLLOW},
    {"statx(EMPTY_PATH)", CALL_AT, by_statx, AT_EMPTY_PATH},
    {"statx(FORCE_SYNC)", CALL_AT, by_statx, AT_STATX_FORCE_SYNC},
    {"statx(wrong flag)", CALL_AT, by_statx, 0x40000000},
    {"__xstat", 0, by_xstat, 0},
    {"__lxstat", 0, by_xstat, 1},
    {"__xstat64", 0, by_xstat64, 0},
    {"__lxstat64", 0, by_xstat64, 1},
    {"__fxstatat(0)", CALL_AT, by_fxstatat, 0},
    {"__fxstatat(NOFOLLOW)", CALL_AT, by_fxstatat, AT_SYMLINK_NOFOLLOW},
    {"access(F_OK)", 0, by_access, F_OK},
    {"access(R_OK)", 0, by_access, R_OK},
    {"access(W_OK)", 0, by_access, W_OK},
    {"access(X_OK)", 0, by_access, X_OK},
    {"access(R_OK|W_OK)", 0, by_access, R_OK | W_OK},
    {"access(wrong mode)", 0, by_access, 64},
    {"faccessat(R_OK)", CALL_AT, by_faccessat, R_OK},
    {"faccessat(W_OK,EACCESS)", CALL_AT, by_faccessat, W_OK | AT_EACCESS},
    {"faccessat(F_OK,NOFOLLOW)", CALL_AT, by_faccessat, F_OK | AT_SYMLINK_NOFOLLOW},
    {"faccessat(X_OK,EACCESS|NOFOLLOW)", CALL_AT, by_faccessat, X_OK | AT_EACCESS | AT_SYMLINK_NOFOLLOW},
    {"faccessat(R_OK,EMPTY_PATH)", CALL_AT, by_faccessat, R_OK | AT_EMPTY_PATH},
    {"eaccess(R_OK)", 0, by_eaccess, R_OK},
    {"euidaccess(W_OK)", 0, by_euidaccess, W_OK},
    {"eaccess(wrong mode)", 0, by_eaccess, 64 | R_OK},
    {"euidaccess(wrong mode)", 0, by_euidaccess, 64},
    {"readlink", 0, by_readlink, PATH_MAX},
    {"readlink(3 bytes)", 0, by_readlink, 3},
    {"readlink(0 bytes)", 0, by_readlink, 0},
    {"readlinkat", CALL_AT, by_readlinkat, PATH_MAX},
    {"statfs", 0, by_statfs, 0},
    {"statvfs", 0, by_statvfs, 0},
    {"identity", 0, by_identity, 0},
};

void part_stat(void)
{
    CASES(calls, true);
}
