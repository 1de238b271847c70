/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* syscall(2) as a function: what names a path goes through the door of the call it is. */

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "shim/door.h"
#include "shim/door_directory.h"
#include "shim/door_open.h"

#define P(N) ((char *)a[N])
#define I(N) ((int)a[N])

/* openat2 with a restriction on how the path resolves is not ours to repeat: it is refused under a root,
 * rather than done in the wrong place. */
static long open_how(const long a[6])
{
    const struct open_how *how = (const struct open_how *)a[2];
    struct target t;
    if (how == NULL || (size_t)a[3] < sizeof *how)
        return real.syscall(SYS_openat2, a[0], a[1], a[2], a[3]);
    if (how->resolve == 0)
        return door_openat(I(0), P(1), (int)how->flags, (mode_t)how->mode);
    if (target_find(&t, I(0), P(1), TARGET_MAKES) != TARGET_HOT)
        return real.syscall(SYS_openat2, a[0], a[1], a[2], a[3]);
    target_done(&t);
    return door_answer(-EAGAIN); /* what the kernel says when it cannot promise the restriction */
}

/* The calls that newer machines do not have. */
static long old_call(long number, const long a[6], bool *known)
{
    *known = true;
    switch (number) {
#ifdef SYS_open
    case SYS_open:
        return door_openat(AT_FDCWD, P(0), I(1), (mode_t)a[2]);
    case SYS_creat:
        return creat(P(0), (mode_t)a[1]);
    case SYS_stat:
        return stat(P(0), (struct stat *)a[1]);
    case SYS_lstat:
        return lstat(P(0), (struct stat *)a[1]);
    case SYS_access:
        return access(P(0), I(1));
    case SYS_unlink:
        return unlink(P(0));
    case SYS_rmdir:
        return rmdir(P(0));
    case SYS_rename:
        return rename(P(0), P(1));
    case SYS_link:
        return link(P(0), P(1));
    case SYS_symlink:
        return symlink(P(0), P(1));
    case SYS_readlink:
        return readlink(P(0), P(1), (size_t)a[2]);
    case SYS_mkdir:
        return mkdir(P(0), (mode_t)a[1]);
    case SYS_mknod:
        return mknod(P(0), (mode_t)a[1], (dev_t)a[2]);
    case SYS_chmod:
        return chmod(P(0), (mode_t)a[1]);
    case SYS_chown:
        return chown(P(0), (uid_t)a[1], (gid_t)a[2]);
    case SYS_lchown:
        return lchown(P(0), (uid_t)a[1], (gid_t)a[2]);
    case SYS_utime:
        return utime(P(0), (const struct utimbuf *)a[1]);
    case SYS_utimes:
        return utimes(P(0), (const struct timeval *)a[1]);
    case SYS_futimesat:
        return futimesat(I(0), P(1), (const struct timeval *)a[2]);
    case SYS_renameat:
        return renameat(I(0), P(1), I(2), P(3));
#endif
    default:
        *known = false;
        return 0;
    }
}

static long names_call(long number, const long a[6], bool *known)
{
    *known = true;
    switch (number) {
    case SYS_openat:
        return door_openat(I(0), P(1), I(2), (mode_t)a[3]);
    case SYS_openat2:
        return open_how(a);
    case SYS_unlinkat:
        return unlinkat(I(0), P(1), I(2));
    case SYS_renameat2:
        return renameat2(I(0), P(1), I(2), P(3), (unsigned)a[4]);
    case SYS_linkat:
        return linkat(I(0), P(1), I(2), P(3), I(4));
    case SYS_symlinkat:
        return symlinkat(P(0), I(1), P(2));
    case SYS_readlinkat:
        return readlinkat(I(0), P(1), P(2), (size_t)a[3]);
    case SYS_mkdirat:
        return mkdirat(I(0), P(1), (mode_t)a[2]);
    case SYS_mknodat:
        return mknodat(I(0), P(1), (mode_t)a[2], (dev_t)a[3]);
    case SYS_execve:
        return execve(P(0), (char *const *)a[1], (char *const *)a[2]);
    case SYS_execveat:
        return execveat(I(0), P(1), (char *const *)a[2], (char *const *)a[3], I(4));
    case SYS_getdents64:
        return process_has_roots() ? door_answer(door_getdents64(I(0), P(1), (size_t)a[2]))
                                   : real.syscall(number, a[0], a[1], a[2]);
    default:
        *known = false;
        return 0;
    }
}

static long meta_call(long number, const long a[6], bool *known)
{
    *known = true;
    switch (number) {
    case SYS_newfstatat:
        return fstatat(I(0), P(1), (struct stat *)a[2], I(3));
    case SYS_fstat:
        return fstat(I(0), (struct stat *)a[1]);
    case SYS_statx:
        return statx(I(0), P(1), I(2), (unsigned)a[3], (struct statx *)a[4]);
    case SYS_faccessat:
        return faccessat(I(0), P(1), I(2), 0);
    case SYS_faccessat2:
        return faccessat(I(0), P(1), I(2), I(3));
    case SYS_fchmodat:
        return fchmodat(I(0), P(1), (mode_t)a[2], 0);
    case SYS_fchownat:
        return fchownat(I(0), P(1), (uid_t)a[2], (gid_t)a[3], I(4));
    case SYS_utimensat:
        if (P(1) == NULL && I(0) == AT_FDCWD) /* for which glibc has an error of its own */
            return real.syscall(number, a[0], a[1], a[2], a[3]);
        return utimensat(I(0), P(1), (const struct timespec *)a[2], I(3));
    case SYS_truncate:
        return truncate(P(0), (off_t)a[1]);
    case SYS_statfs:
        return statfs(P(0), (struct statfs *)a[1]);
    case SYS_fchmod:
        return fchmod(I(0), (mode_t)a[1]);
    case SYS_fchown:
        return fchown(I(0), (uid_t)a[1], (gid_t)a[2]);
    case SYS_fsync:
        return fsync(I(0));
    case SYS_fdatasync:
        return fdatasync(I(0));
    default:
        *known = false;
        return 0;
    }
}

static long xattr_call(long number, const long a[6], bool *known)
{
    *known = true;
    switch (number) {
    case SYS_setxattr:
        return setxattr(P(0), P(1), P(2), (size_t)a[3], I(4));
    case SYS_lsetxattr:
        return lsetxattr(P(0), P(1), P(2), (size_t)a[3], I(4));
    case SYS_getxattr:
        return getxattr(P(0), P(1), P(2), (size_t)a[3]);
    case SYS_lgetxattr:
        return lgetxattr(P(0), P(1), P(2), (size_t)a[3]);
    case SYS_listxattr:
        return listxattr(P(0), P(1), (size_t)a[2]);
    case SYS_llistxattr:
        return llistxattr(P(0), P(1), (size_t)a[2]);
    case SYS_removexattr:
        return removexattr(P(0), P(1));
    case SYS_lremovexattr:
        return lremovexattr(P(0), P(1));
    default:
        *known = false;
        return 0;
    }
}

DOOR long syscall(long number, ...)
{
    static long (*const calls[])(long, const long[6], bool *) = {names_call, meta_call, xattr_call, old_call};
    long a[6];
    bool known = false;
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(more, long);
    va_end(more);
    if (!process_has_roots())
        return real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        long answer = calls[i](number, a, &known);
        if (known)
            return answer;
    }
    return real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
