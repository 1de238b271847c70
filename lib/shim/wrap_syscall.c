/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* syscall(2) as a function: what names a path goes through the wrapper of the call it is. */

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/sys.h"
#include "shim/root_of.h"
#include "shim/wrap.h"
#include "shim/wrap_credentials.h"
#include "shim/wrap_directory.h"
#include "shim/wrap_landlock.h"
#include "shim/wrap_memory.h"
#include "shim/wrap_mount.h"
#include "shim/wrap_open.h"
#include "shim/wrap_signal.h"
#include "shim/wrap_syscall_new.h"
#include "shim/fdcache.h"

#define P(N) ((char *)a[N])
#define I(N) ((int)a[N])

/* What the kernel has against it whatever the path is, it says before it looks at the directory. */
static bool wrap_syscall_is_refused(const long a[6])
{
    int saved = errno;
    bool refused = REAL(syscall)(SYS_openat2, -1, "x", a[2], a[3]) != -1 || errno != EBADF;
    if (!refused)
        errno = saved;
    return refused;
}

/* Does the kernel find there what the name stands for? Not what is in a branch, where a link may lead, too; and what may have
 * to be made is to have its name first. */
static bool wrap_syscall_is_the_kernels(const struct target *t, const struct open_how *how)
{
    const bool follows = !(how->flags & O_NOFOLLOW) && !(how->resolve & RESOLVE_NO_SYMLINKS);
    return !target_is_away(t) && !(how->flags & O_CREAT) && !(t->found.known && t->found.entry.type == DT_LNK && follows);
}

/* With RESOLVE_IN_ROOT a path begins at the descriptor's directory, whatever it looks like, */
static const char *wrap_syscall_within(const struct open_how *how, const char *path)
{
    const char *at = path;
    while ((how->resolve & RESOLVE_IN_ROOT) && process_can_read(at, 1) && *at == '/')
        at++;
    return at != path && process_can_read(at, 1) && *at == '\0' ? "." : at;
}

/* and `..` does not lead out of that. */
static bool wrap_syscall_may_climb(const struct open_how *how, const char *path)
{
    return (how->resolve & RESOLVE_IN_ROOT) && strstr(path, "..") != NULL;
}

static bool wrap_syscall_is_within_a_root(const struct open_how *how, int at)
{
    struct names_root *root;
    struct dirid id;
    return (how->resolve & RESOLVE_IN_ROOT) && root_of_directory(at, "", AT_EMPTY_PATH, &root, &id, NULL) != 0;
}

/* openat2 with a restriction on how the path resolves, which is not ours to repeat: rather than done in the wrong place it is
 * refused as by a kernel without openat2, so that programs go their other way. */
static long wrap_syscall_open_restricted_in(struct target *t, const long a[6])
{
    const struct open_how *how = (const struct open_how *)a[2];
    const bool is_the_kernels = wrap_syscall_is_the_kernels(t, how) && !wrap_syscall_may_climb(how, P(1));
    long code = TARGET_CALL(t, is_the_kernels ? SYS4(SYS_openat2, a[0], a[1], a[2], a[3]) : -ENOSYS);
    target_done(t);
    return wrap_answer(code);
}

/* Not inlined: its target is not on the stack of an open without a restriction. */
__attribute__((noinline)) static long wrap_syscall_open_restricted(const long a[6])
{
    struct target *t = NULL;
    struct scratch *seen = NULL;
    const struct open_how *how = (const struct open_how *)a[2];
    const char *path = wrap_syscall_within(how, P(1));
    int found = TARGET_FIND(t, seen, I(0), path, TARGET_MAKES);
    if (found == TARGET_MANAGED)
        return wrap_syscall_open_restricted_in(t, a);
    if (wrap_syscall_is_within_a_root(how, I(0)))
        return wrap_answer(-ENOSYS);
    return found < 0 ? wrap_answer(found) : REAL(syscall)(SYS_openat2, a[0], a[1], a[2], a[3]);
}

static long wrap_syscall_open_how(const long a[6])
{
    const struct open_how *how = (const struct open_how *)a[2];
    if ((size_t)a[3] < sizeof *how || !process_can_read(how, sizeof *how))
        return REAL(syscall)(SYS_openat2, a[0], a[1], a[2], a[3]);
    if (wrap_syscall_is_refused(a))
        return -1;
    if (how->resolve == 0)
        return wrap_openat(I(0), P(1), (int)how->flags, (mode_t)how->mode);
    return wrap_syscall_open_restricted(a);
}

int openat2(int at, const char *path, const void *how, size_t size); /* glibc 2.43 */
WRAPPER int openat2(int at, const char *path, const void *how, size_t size)
{
    const long a[6] = {at, (long)path, (long)how, (long)size};
    return process_has_roots() ? (int)wrap_syscall_open_how(a) : REAL(openat2)(at, path, how, size);
}

#ifdef SYS_getdents
/* The call from before there were types: each name stands one byte earlier, its type in the entry's last
 * byte. */
static long wrap_syscall_old_getdents(int fd, char *to, size_t size)
{
    long length = wrap_getdents64(fd, to, size);
    for (long at = 0; at < length;) {
        struct dirent64 *entry = (struct dirent64 *)(to + at);
        const size_t name = offsetof(struct dirent64, d_name);
        char type = (char)entry->d_type;
        at += entry->d_reclen;
        memmove((char *)entry + name - 1, (char *)entry + name, entry->d_reclen - name);
        ((char *)entry)[entry->d_reclen - 1] = type;
    }
    return length;
}
#endif

#ifdef SYS_utimes
/* The kernel looks at them before it looks for the file; libc's functions do so elsewhere, or later. */
static bool wrap_syscall_are_times(const struct timeval times[2])
{
    return times == NULL || (process_can_read(times, 2 * sizeof *times) && times[0].tv_usec >= 0 &&
                             times[0].tv_usec < 1000000 && times[1].tv_usec >= 0 && times[1].tv_usec < 1000000);
}
#endif

/* The calls that newer machines do not have. */
static long wrap_syscall_old_call(long number, const long a[6], bool *known)
{
    *known = true;
    switch (number) {
#ifdef SYS_open
    case SYS_open:
        return wrap_openat(AT_FDCWD, P(0), I(1), (mode_t)a[2]);
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
        if (P(1) != NULL && !process_can_read(P(1), sizeof(struct utimbuf)))
            return REAL(syscall)(number, a[0], a[1]);
        return utime(P(0), (const struct utimbuf *)a[1]);
    case SYS_utimes:
        if (!wrap_syscall_are_times((const struct timeval *)a[1]))
            return REAL(syscall)(number, a[0], a[1]);
        return utimes(P(0), (const struct timeval *)a[1]);
    case SYS_futimesat:
        if (!wrap_syscall_are_times((const struct timeval *)a[2]))
            return REAL(syscall)(number, a[0], a[1], a[2]);
        return futimesat(I(0), P(1), (const struct timeval *)a[2]);
    case SYS_getdents:
        return process_has_roots() ? wrap_answer(wrap_syscall_old_getdents(I(0), P(1), (size_t)a[2]))
                                   : REAL(syscall)(number, a[0], a[1], a[2]);
#endif
#ifdef SYS_renameat
    case SYS_renameat:
        return renameat(I(0), P(1), I(2), P(3));
#endif
    default:
        *known = false;
        return 0;
    }
}

static long wrap_syscall_names_call(long number, const long a[6], bool *known)
{
    *known = true;
    switch (number) {
    case SYS_openat:
        return wrap_openat(I(0), P(1), I(2), (mode_t)a[3]);
    case SYS_openat2:
        return wrap_syscall_open_how(a);
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
        return process_has_roots() ? wrap_answer(wrap_getdents64(I(0), P(1), (size_t)a[2]))
                                   : REAL(syscall)(number, a[0], a[1], a[2]);
    default:
        *known = false;
        return 0;
    }
}

/* Newer than the headers that this is built with may be; their numbers are the same on every machine. */
enum {
    CALL_IO_URING_SETUP = 425,
    CALL_FCHMODAT2 = 452,
};

/* fchmodat2 knows what fchmodat does not: an empty path, also of a descriptor opened with O_PATH. */
static long wrap_syscall_change_mode(const long a[6])
{
    bool is_empty = (I(3) & AT_EMPTY_PATH) && process_can_read(P(1), 1) && P(1)[0] == '\0';
    if (!is_empty)
        return fchmodat(I(0), P(1), (mode_t)a[2], I(3) & ~AT_EMPTY_PATH);
    long code = REAL(syscall)(CALL_FCHMODAT2, a[0], a[1], a[2], a[3]);
    return code == 0 ? (directory_follow(I(0), "", AT_EMPTY_PATH), 0) : code;
}

static long wrap_syscall_meta_call(long number, const long a[6], bool *known)
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
    case CALL_FCHMODAT2:
        return wrap_syscall_change_mode(a);
    case SYS_fchownat:
        return fchownat(I(0), P(1), (uid_t)a[2], (gid_t)a[3], I(4));
    case SYS_utimensat:
        if (P(1) == NULL && (I(0) == AT_FDCWD || I(3) != 0)) /* for which glibc has an error of its own */
            return REAL(syscall)(number, a[0], a[1], a[2], a[3]);
        if (P(1) == NULL)
            return futimens(I(0), (const struct timespec *)a[2]);
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

/* What names a path for something else than a file's own sake, and who the process is. */
static long wrap_syscall_other_call(long number, const long a[6], bool *known)
{
    *known = true;
    switch (number) {
    case SYS_chdir:
        return chdir(P(0));
    case SYS_fchdir:
        return fchdir(I(0));
    case SYS_bind:
        return bind(I(0), (const struct sockaddr *)a[1], (socklen_t)a[2]);
    case SYS_connect:
        return connect(I(0), (const struct sockaddr *)a[1], (socklen_t)a[2]);
    case SYS_inotify_add_watch:
        return inotify_add_watch(I(0), P(1), (uint32_t)a[2]);
    case SYS_fanotify_mark:
        return fanotify_mark(I(0), (unsigned)a[1], (uint64_t)a[2], I(3), P(4));
    case CALL_IO_URING_SETUP: /* in a ring, paths would reach the kernel without a wrapper: the caller is told that there is
                               * none, as an older kernel says, and does it by calls */
        return wrap_answer(-ENOSYS);
    case SYS_setuid: /* of one thread, which libc's function is not */
    case SYS_setreuid:
    case SYS_setresuid:
    case SYS_setfsuid:
    case SYS_setgid:
    case SYS_setregid:
    case SYS_setresgid:
    case SYS_setfsgid:
    case SYS_setgroups:
    case SYS_capset:
        credentials_prepare();
        return REAL(syscall)(number, a[0], a[1], a[2]);
    case SYS_prctl:
        return prctl(I(0), a[1], a[2], a[3], a[4]);
    case SYS_seccomp:
        process_will_be_filtered();
        return REAL(syscall)(number, a[0], a[1], a[2]);
    case SYS_chroot:
        return chroot(P(0));
    case SYS_name_to_handle_at:
        return name_to_handle_at(I(0), P(1), (struct file_handle *)a[2], (int *)a[3], I(4));
    default:
        *known = false;
        return 0;
    }
}

static long wrap_syscall_xattr_call(long number, const long a[6], bool *known)
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
    case SYS_fsetxattr:
        return fsetxattr(I(0), P(1), P(2), (size_t)a[3], I(4));
    case SYS_fremovexattr:
        return fremovexattr(I(0), P(1));
    case SYS_ioctl:
        return ioctl(I(0), (unsigned long)a[1], P(2));
    case SYS_removexattr:
        return removexattr(P(0), P(1));
    case SYS_lremovexattr:
        return lremovexattr(P(0), P(1));
    default:
        *known = false;
        return 0;
    }
}

/* syscall, which is declared with `...`: a function with that keeps 176 bytes of registers on its stack. Whole numbers are
 * passed to both in the same places (System V for x86-64, AAPCS64); what was not passed is read as va_arg does. */
long wrap_syscall_any(long number, long, long, long, long, long, long) __asm__("syscall");
WRAPPER long wrap_syscall_any(long number, long one, long two, long three, long four, long five, long six)
{
    static long (*const calls[])(long, const long[6], bool *) = {
        wrap_syscall_names_call, wrap_syscall_meta_call, wrap_syscall_other_call, wrap_syscall_xattr_call,
        wrap_syscall_new_call,   wrap_mount_call,        wrap_landlock_call,      wrap_memory_call,
        wrap_signal_call,        wrap_syscall_old_call};
    const long a[6] = {one, two, three, four, five, six};
    bool known = false;
    if (!process_has_roots())
        return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        long answer = calls[i](number, a, &known);
        if (known)
            return answer;
    }
    if (number > WRAP_SYSCALL_NEWEST)
        return wrap_syscall_unknown_call(number, a);
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
