/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/real_missing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "base/kernel_abi.h"
#include "base/sys.h"
#include "shim/real.h"

static int real_missing_answer(long answer)
{
    if (answer >= 0)
        return (int)answer;
    errno = (int)-answer;
    return -1;
}

static int real_missing_fstatat(int at, const char *path, struct stat *to, int flags)
{
    return real_missing_answer(SYS4(SYS_newfstatat, at, path, to, flags));
}

static int real_missing_stat(const char *path, struct stat *to)
{
    return real_missing_fstatat(AT_FDCWD, path, to, 0);
}

static int real_missing_lstat(const char *path, struct stat *to)
{
    return real_missing_fstatat(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW);
}

static int real_missing_fstat(int fd, struct stat *to)
{
    return real_missing_answer(SYS2(SYS_fstat, fd, to));
}

static int real_missing_mknodat(int at, const char *path, mode_t mode, dev_t device)
{
    return real_missing_answer(SYS4(SYS_mknodat, at, path, mode, (unsigned)device));
}

static int real_missing_mknod(const char *path, mode_t mode, dev_t device)
{
    return real_missing_mknodat(AT_FDCWD, path, mode, device);
}

static int real_missing_execveat(int at, const char *path, char *const arguments[], char *const environment[], int flags)
{
    return real_missing_answer(SYS5(SYS_execveat, at, path, arguments, environment, flags));
}

static int real_missing_close_range(unsigned first, unsigned last, int flags)
{
    return real_missing_answer(SYS3(SYS_close_range, first, last, flags));
}

/* A kernel before 5.9 closes them one by one. */
static void real_missing_closefrom(int first)
{
    struct rlimit limit;
    unsigned fd = first > 0 ? (unsigned)first : 0;
    if (SYS3(SYS_close_range, fd, ~0u, 0) == 0 || SYS4(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) != 0)
        return;
    for (; fd < limit.rlim_cur; fd++)
        sys_close((int)fd);
}

static int real_missing_openat2(int at, const char *path, const void *how, size_t size)
{
    return real_missing_answer(SYS4(SYS_openat2, at, path, how, size));
}

static int real_missing_open_tree(int at, const char *path, unsigned flags)
{
    return real_missing_answer(SYS3(SYS_open_tree, at, path, flags));
}

static int real_missing_move_mount(int from, const char *path, int to, const char *target, unsigned flags)
{
    return real_missing_answer(SYS5(SYS_move_mount, from, path, to, target, flags));
}

static int real_missing_fsconfig(int fs, unsigned command, const char *key, const void *value, int auxiliary)
{
    return real_missing_answer(SYS5(SYS_fsconfig, fs, command, key, value, auxiliary));
}

static int real_missing_fspick(int at, const char *path, unsigned flags)
{
    return real_missing_answer(SYS3(SYS_fspick, at, path, flags));
}

static int real_missing_mount_setattr(int at, const char *path, unsigned flags, void *attributes, size_t size)
{
    return real_missing_answer(SYS5(SYS_mount_setattr, at, path, flags, attributes, size));
}

/* As libc with a kernel that cannot: there is no child that could be awaited by a descriptor. */
static int real_missing_pidfd_spawn(int *child, const char *path, const posix_spawn_file_actions_t *actions,
                                    const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    (void)child, (void)path, (void)actions, (void)attributes, (void)arguments, (void)environment;
    return ENOSYS;
}

/* Where dlsym is asked for all (real.c), an allocator may be in need of these before they are found. */
static int real_missing_munmap(void *at, size_t size)
{
    return real_missing_answer(sys_munmap(at, size));
}

static int real_missing_mprotect(void *at, size_t size, int protection)
{
    return real_missing_answer(SYS3(SYS_mprotect, at, size, protection));
}

static int real_missing_madvise(void *at, size_t size, int advice)
{
    return real_missing_answer(SYS3(SYS_madvise, at, size, advice));
}

static ssize_t real_missing_process_madvise(int process, const struct iovec *parts, size_t count, int advice, unsigned flags)
{
    const long answer = SYS5(SYS_process_madvise, process, parts, count, advice, flags);
    return answer < 0 ? real_missing_answer(answer) : answer;
}

/* struct stat and struct stat64 are one. No table: its pointers would have to be relocated first. */
#define MISSING(NAME, FUNCTION)                                                                                                \
    case offsetof(struct real, NAME) / sizeof(void *):                                                                         \
        return (void *)(FUNCTION);

void *real_missing(size_t index)
{
    switch (index) {
        MISSING(stat, real_missing_stat)
        MISSING(stat64, real_missing_stat)
        MISSING(lstat, real_missing_lstat)
        MISSING(lstat64, real_missing_lstat)
        MISSING(fstatat, real_missing_fstatat)
        MISSING(fstatat64, real_missing_fstatat)
        MISSING(fstat, real_missing_fstat)
        MISSING(fstat64, real_missing_fstat)
        MISSING(__fstat64, real_missing_fstat)
        MISSING(mknod, real_missing_mknod)
        MISSING(mknodat, real_missing_mknodat)
        MISSING(execveat, real_missing_execveat)
        MISSING(close_range, real_missing_close_range)
        MISSING(closefrom, real_missing_closefrom)
        MISSING(openat2, real_missing_openat2)
        MISSING(open_tree, real_missing_open_tree)
        MISSING(move_mount, real_missing_move_mount)
        MISSING(fsconfig, real_missing_fsconfig)
        MISSING(fspick, real_missing_fspick)
        MISSING(mount_setattr, real_missing_mount_setattr)
        MISSING(munmap, real_missing_munmap)
        MISSING(mprotect, real_missing_mprotect)
        MISSING(madvise, real_missing_madvise)
        MISSING(process_madvise, real_missing_process_madvise)
        MISSING(pidfd_spawn, real_missing_pidfd_spawn)
        MISSING(pidfd_spawnp, real_missing_pidfd_spawn)
    }
    return NULL;
}
