/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What changes or asks a file's attributes by path: the real call on the real place. Where it is a directory,
 * its mirrors learn of it. */

#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/sys.h"
#include "shim/wrap.h"

/* After a change that files born in a directory inherit. A mirror that could not follow is the daemon's to
 * report; the change itself is done. */
static inline long wrap_meta_followed(long code, int at, const char *path, int flags)
{
    if (code != 0 || !process_has_roots())
        return code;
    directory_follow(at, path, flags);
    return 0;
}

/* After a call on the target `t`, whose result was DONE: gives it back. It may be a directory unless it is
 * in a branch. */
#define CHANGED_SO(FLAGS, DONE)                                                                                                \
    ({                                                                                                                         \
        long there_ = (DONE);                                                                                                  \
        if (!target_is_away(t))                                                                                                \
            wrap_meta_followed(there_, t->at, t->path, FLAGS);                                                                 \
        target_done(t);                                                                                                        \
        there_;                                                                                                                \
    })
#define CHANGED(FLAGS, CALL) CHANGED_SO(FLAGS, TARGET_CALL_NEAR(t, CALL))
#define CHANGED_BY_PATH(FLAGS, CALL) CHANGED_SO(FLAGS, TARGET_CALL(t, CALL))

WRAPPER int chmod(const char *path, mode_t mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), wrap_meta_followed(REAL(chmod)(path, mode), AT_FDCWD, path, 0),
                             CHANGED(0, SYS3(SYS_fchmodat, t->real_at, t->real_path, mode)));
}

/* glibc makes AT_SYMLINK_NOFOLLOW itself (the system call of that time has no flags): it is given the real
 * place. */
WRAPPER int fchmodat(int at, const char *path, mode_t mode, int flags)
{
    const int nofollow = flags & AT_SYMLINK_NOFOLLOW;
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(at, path, wrap_follow(flags),
                             wrap_meta_followed(REAL(fchmodat)(at, path, mode, flags), at, path, nofollow),
                             CHANGED(nofollow, REAL(fchmodat)(t->real_at, t->real_path, mode, flags) == 0 ? 0 : -errno));
}

WRAPPER int lchmod(const char *path, mode_t mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(
        AT_FDCWD, path, wrap_follow(AT_SYMLINK_NOFOLLOW),
        wrap_meta_followed(REAL(lchmod)(path, mode), AT_FDCWD, path, AT_SYMLINK_NOFOLLOW),
        CHANGED(AT_SYMLINK_NOFOLLOW, REAL(fchmodat)(t->real_at, t->real_path, mode, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno));
}

WRAPPER int chown(const char *path, uid_t user, gid_t group)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0),
                             wrap_meta_followed(REAL(chown)(path, user, group), AT_FDCWD, path, 0),
                             CHANGED(0, sys_fchownat(t->real_at, t->real_path, user, group, 0)));
}

WRAPPER int lchown(const char *path, uid_t user, gid_t group)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(
        AT_FDCWD, path, wrap_follow(AT_SYMLINK_NOFOLLOW),
        wrap_meta_followed(REAL(lchown)(path, user, group), AT_FDCWD, path, AT_SYMLINK_NOFOLLOW),
        CHANGED(AT_SYMLINK_NOFOLLOW, sys_fchownat(t->real_at, t->real_path, user, group, AT_SYMLINK_NOFOLLOW)));
}

WRAPPER int fchownat(int at, const char *path, uid_t user, gid_t group, int flags)
{
    const int plain = flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(at, path, wrap_follow(flags),
                             wrap_meta_followed(REAL(fchownat)(at, path, user, group, flags), at, path, plain),
                             CHANGED(plain, sys_fchownat(t->real_at, t->real_path, user, group, flags)));
}

static void wrap_meta_settle(int at, const char *path, int flags)
{
    int saved = errno;
    if (path != NULL)
        directory_settle(at, path, flags);
    errno = saved;
}

/* An access time alone leaves the rest to what it was. */
static bool wrap_meta_sets_mtime(const struct timespec times[2])
{
    return !process_can_read(times, 2 * sizeof *times) || times[1].tv_nsec != UTIME_OMIT;
}

static int wrap_meta_set_times_there(struct target *to, const struct timespec times[2], int flags)
{
    if (!target_is_away(to) && wrap_meta_sets_mtime(times))
        wrap_meta_settle(to->at, to->path, flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH));
    return sys_utimensat(to->real_at, to->real_path, times, flags);
}

static long wrap_meta_set_times(struct target *to, const struct timespec times[2], int flags)
{
    long code = TARGET_CALL_NEAR(to, wrap_meta_set_times_there(to, times, flags));
    target_done(to);
    return code;
}

/* Microseconds as the other calls give them. False: they are none, or cannot be read. */
static bool wrap_meta_from_timeval(const struct timeval times[2], struct timespec to[2])
{
    if (!process_can_read(times, 2 * sizeof *times))
        return false;
    for (int i = 0; i < 2; i++) {
        if (times[i].tv_usec < 0 || times[i].tv_usec >= 1000000)
            return false;
        to[i] = (struct timespec){.tv_sec = times[i].tv_sec, .tv_nsec = times[i].tv_usec * 1000};
    }
    return true;
}

/* Whether what is no time is refused before the file is looked up depends on the version of glibc: ORIGINAL is its own call. */
#define SET_TIMEVALS(TIMES, FLAGS, ORIGINAL)                                                                                   \
    ({                                                                                                                         \
        struct timespec split_[2];                                                                                             \
        const bool are_now_ = (TIMES) == NULL;                                                                                 \
        are_now_ || wrap_meta_from_timeval(TIMES, split_) ? wrap_meta_set_times(t, are_now_ ? NULL : split_, FLAGS)            \
                                                          : WRAPPER_THERE((ORIGINAL) == 0 ? 0 : -errno);                       \
    })

WRAPPER int utime(const char *path, const struct utimbuf *times)
{
    struct timespec split[2];
    WRAPPER_LAUNDER(path);
    if (times != NULL) {
        split[0] = (struct timespec){.tv_sec = times->actime};
        split[1] = (struct timespec){.tv_sec = times->modtime};
    }
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), (wrap_meta_settle(AT_FDCWD, path, 0), REAL(utime)(path, times)),
                             wrap_meta_set_times(t, times != NULL ? split : NULL, 0));
}

WRAPPER int utimes(const char *path, const struct timeval times[2])
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), (wrap_meta_settle(AT_FDCWD, path, 0), REAL(utimes)(path, times)),
                             SET_TIMEVALS(times, 0, REAL(utimes)(t->real_path, times)));
}

WRAPPER int lutimes(const char *path, const struct timeval times[2])
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(AT_SYMLINK_NOFOLLOW),
                             (wrap_meta_settle(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW), REAL(lutimes)(path, times)),
                             SET_TIMEVALS(times, AT_SYMLINK_NOFOLLOW, REAL(lutimes)(t->real_path, times)));
}

WRAPPER int futimesat(int at, const char *path, const struct timeval times[2])
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(at, path, wrap_follow(0), (wrap_meta_settle(at, path, 0), REAL(futimesat)(at, path, times)),
                             SET_TIMEVALS(times, 0, REAL(futimesat)(t->real_at, t->real_path, times)));
}

/* Without a path it is the descriptor itself. */
static void wrap_meta_settle_words(int at, const char *path, const struct timespec times[2], int flags)
{
    if (wrap_meta_sets_mtime(times))
        wrap_meta_settle(at, path != NULL ? path : "",
                         path != NULL ? flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) : AT_EMPTY_PATH);
}

WRAPPER int utimensat(int at, const char *path, const struct timespec times[2], int flags)
{
    const char *where = path;
    WRAPPER_LAUNDER(where);
    return (int)WRAPPER_PATH(at, where, wrap_follow(flags),
                             (wrap_meta_settle_words(at, where, times, flags), REAL(utimensat)(at, where, times, flags)),
                             wrap_meta_set_times(t, times, flags));
}

WRAPPER int truncate(const char *path, off_t length)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), REAL(truncate)(path, length),
                             WRAPPER_THERE(SYS2(SYS_truncate, t->real_path, length)));
}

WRAPPER int truncate64(const char *path, off64_t length)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), REAL(truncate64)(path, length),
                             WRAPPER_THERE(SYS2(SYS_truncate, t->real_path, length)));
}

/* These have no *at form, so the trunk's own words must be seen from the working directory, as they are:
 * AT_FDCWD. */
WRAPPER int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0),
                             wrap_meta_followed(REAL(setxattr)(path, name, value, size, flags), AT_FDCWD, path, 0),
                             CHANGED_BY_PATH(0, SYS5(SYS_setxattr, t->real_path, name, value, size, flags)));
}

WRAPPER int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(
        AT_FDCWD, path, wrap_follow(AT_SYMLINK_NOFOLLOW),
        wrap_meta_followed(REAL(lsetxattr)(path, name, value, size, flags), AT_FDCWD, path, AT_SYMLINK_NOFOLLOW),
        CHANGED_BY_PATH(AT_SYMLINK_NOFOLLOW, SYS5(SYS_lsetxattr, t->real_path, name, value, size, flags)));
}

WRAPPER int removexattr(const char *path, const char *name)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0),
                             wrap_meta_followed(REAL(removexattr)(path, name), AT_FDCWD, path, 0),
                             CHANGED_BY_PATH(0, SYS2(SYS_removexattr, t->real_path, name)));
}

WRAPPER int lremovexattr(const char *path, const char *name)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(AT_SYMLINK_NOFOLLOW),
                             wrap_meta_followed(REAL(lremovexattr)(path, name), AT_FDCWD, path, AT_SYMLINK_NOFOLLOW),
                             CHANGED_BY_PATH(AT_SYMLINK_NOFOLLOW, SYS2(SYS_lremovexattr, t->real_path, name)));
}

/* Of a descriptor, if it is a directory's. */
WRAPPER int fchmod(int fd, mode_t mode)
{
    process_has_roots();
    return wrap_meta_followed(REAL(fchmod)(fd, mode), fd, "", AT_EMPTY_PATH);
}

WRAPPER int fchown(int fd, uid_t user, gid_t group)
{
    process_has_roots();
    return wrap_meta_followed(REAL(fchown)(fd, user, group), fd, "", AT_EMPTY_PATH);
}

WRAPPER int futimens(int fd, const struct timespec times[2])
{
    process_has_roots();
    if (wrap_meta_sets_mtime(times))
        wrap_meta_settle(fd, "", AT_EMPTY_PATH);
    return REAL(futimens)(fd, times);
}

WRAPPER int futimes(int fd, const struct timeval times[2])
{
    process_has_roots();
    wrap_meta_settle(fd, "", AT_EMPTY_PATH);
    return REAL(futimes)(fd, times);
}

WRAPPER int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    process_has_roots();
    return wrap_meta_followed(REAL(fsetxattr)(fd, name, value, size, flags), fd, "", AT_EMPTY_PATH);
}

WRAPPER int fremovexattr(int fd, const char *name)
{
    process_has_roots();
    return wrap_meta_followed(REAL(fremovexattr)(fd, name), fd, "", AT_EMPTY_PATH);
}

/* Requests that change what files born in a directory inherit. Those of Lustre (lustre_user.h) and of CephFS (fs/ceph/ioctl.h)
 * are in no header of the kernel. */
#define LUSTRE_LOV_SETSTRIPE _IOW('f', 154, long)
#define LUSTRE_LOV_SETEA _IOW('f', 156, long)
#define CEPH_SET_LAYOUT_POLICY _IOW(0x97, 5, int64_t[5])

static bool wrap_meta_is_inherited(unsigned long request)
{
    return request == FS_IOC_SETFLAGS || request == FS_IOC_FSSETXATTR || request == LUSTRE_LOV_SETSTRIPE ||
           request == LUSTRE_LOV_SETEA || request == CEPH_SET_LAYOUT_POLICY;
}

/* The kernel takes one argument, whatever it is. */
WRAPPER int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (!wrap_meta_is_inherited(request))
        return REAL(ioctl)(fd, request, argument);
    process_has_roots();
    return wrap_meta_followed(REAL(ioctl)(fd, request, argument), fd, "", AT_EMPTY_PATH);
}

/* What was made in a directory is safe when its fsync returns: so its mirrors are synced too. */
static int wrap_meta_synced(int code, int fd)
{
    if (code != 0 || !process_has_roots())
        return code;
    int saved = errno;
    code = directory_sync(fd);
    errno = saved;
    return (int)wrap_answer(code);
}

WRAPPER int fsync(int fd)
{
    process_has_roots();
    return wrap_meta_synced(REAL(fsync)(fd), fd);
}

WRAPPER int fdatasync(int fd)
{
    process_has_roots();
    return wrap_meta_synced(REAL(fdatasync)(fd), fd);
}

WRAPPER int statfs(const char *path, struct statfs *to)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), REAL(statfs)(path, to),
                             WRAPPER_THERE(SYS2(SYS_statfs, t->real_path, to)));
}

WRAPPER int statfs64(const char *path, struct statfs64 *to)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), REAL(statfs64)(path, to),
                             WRAPPER_THERE(SYS2(SYS_statfs, t->real_path, to)));
}

int __statfs(const char *path, struct statfs *to);
WRAPPER int __statfs(const char *path, struct statfs *to)
{
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), REAL(__statfs)(path, to),
                             WRAPPER_THERE(SYS2(SYS_statfs, t->real_path, to)));
}

/* statvfs is arithmetic on statfs, and glibc's: it is given the real place. */
WRAPPER int statvfs(const char *path, struct statvfs *to)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), REAL(statvfs)(path, to),
                             WRAPPER_THERE(REAL(statvfs)(t->real_path, to) == 0 ? 0 : -errno));
}

WRAPPER int statvfs64(const char *path, struct statvfs64 *to)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), REAL(statvfs64)(path, to),
                             WRAPPER_THERE(REAL(statvfs64)(t->real_path, to) == 0 ? 0 : -errno));
}

/* Not everything has a limit: then the answer is -1 and no error, for which this stands. */
#define NO_LIMIT LONG_MAX

static long wrap_meta_limit_of(const char *path, int name)
{
    errno = 0;
    long limit = REAL(pathconf)(path, name);
    return limit != -1 ? limit : errno == 0 ? NO_LIMIT : -errno;
}

WRAPPER long pathconf(const char *path, int name)
{
    WRAPPER_LAUNDER(path);
    int saved = errno;
    errno = 0;
    long limit = WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), REAL(pathconf)(path, name),
                              WRAPPER_THERE(wrap_meta_limit_of(t->real_path, name)));
    if (limit != -1 || errno == 0)
        errno = saved;
    return limit == NO_LIMIT ? -1 : limit;
}

/* A key is what glibc makes of a file's identity; any 32 bits are one. */
static long wrap_meta_key_there(struct target *to, int project)
{
    struct stat stat;
    long code = TARGET_CALL(to, SYS4(SYS_newfstatat, to->real_at, to->real_path, &stat, 0));
    target_done(to);
    if (code != 0)
        return code;
    return (uint32_t)(stat.st_ino & 0xffff) | (uint32_t)(stat.st_dev & 0xff) << 16 | (uint32_t)(project & 0xff) << 24;
}

WRAPPER key_t ftok(const char *path, int project)
{
    WRAPPER_LAUNDER(path);
    return (key_t)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), REAL(ftok)(path, project), wrap_meta_key_there(t, project));
}

/* It follows a link only if told so. */
WRAPPER int name_to_handle_at(int at, const char *path, struct file_handle *handle, int *mount, int flags)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(at, path, wrap_follow(flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW),
                             REAL(name_to_handle_at)(at, path, handle, mount, flags),
                             WRAPPER_THERE(SYS5(SYS_name_to_handle_at, t->real_at, t->real_path, handle, mount, flags)));
}

/* faccessat(2) has no flags; glibc uses faccessat2 or computes. It is given the real place. */
#define ACCESSIBLE(MODE, FLAGS) WRAPPER_LOOK(REAL(faccessat)(t->real_at, t->real_path, MODE, FLAGS) == 0 ? 0 : -errno)

/* A program that calls this one may have restricted itself to it: glibc's faccessat would ask faccessat2 first. */
WRAPPER int access(const char *path, int mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), REAL(access)(path, mode),
                             WRAPPER_LOOK((int)SYS3(SYS_faccessat, t->real_at, t->real_path, mode)));
}

WRAPPER int faccessat(int at, const char *path, int mode, int flags)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(at, path, wrap_follow(flags), REAL(faccessat)(at, path, mode, flags), ACCESSIBLE(mode, flags));
}

WRAPPER int eaccess(const char *path, int mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), REAL(eaccess)(path, mode),
                             WRAPPER_THERE(REAL(eaccess)(t->real_path, mode) == 0 ? 0 : -errno));
}

WRAPPER int euidaccess(const char *path, int mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(0), REAL(euidaccess)(path, mode),
                             WRAPPER_THERE(REAL(euidaccess)(t->real_path, mode) == 0 ? 0 : -errno));
}
