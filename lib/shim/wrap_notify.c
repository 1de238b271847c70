/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Waiting for events. The kernel reports what happens in the trunk's directory: its files move there, and
 * creates in it stay there from then on. A file is watched at its real place. */

#include <fcntl.h>
#include <stdint.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "shim/wrap.h"

WRAPPER int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    WRAPPER_LAUNDER(path);
    int flags = mask & IN_DONT_FOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
    int code = process_has_roots() && path != NULL ? directory_watch(AT_FDCWD, path, flags) : 0;
    if (code < 0)
        return (int)wrap_answer(code);
    return (int)WRAPPER_PATH(AT_FDCWD, path, wrap_follow(flags), REAL(inotify_add_watch)(fd, path, mask),
                             WRAPPER_THERE(SYS3(SYS_inotify_add_watch, fd, t->real_path, mask)));
}

/* A mark on a mount or a file system sees the branches, too. */
static bool wrap_notify_marks_an_inode(unsigned flags)
{
    return (flags & FAN_MARK_ADD) && !(flags & (FAN_MARK_MOUNT | FAN_MARK_FILESYSTEM));
}

/* Without a path it is the descriptor itself. */
WRAPPER int fanotify_mark(int fd, unsigned flags, uint64_t mask, int at, const char *path)
{
    WRAPPER_LAUNDER(path);
    int nofollow = flags & FAN_MARK_DONT_FOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
    int code = process_has_roots() && wrap_notify_marks_an_inode(flags)
                   ? directory_watch(at, path != NULL ? path : "", path != NULL ? nofollow : AT_EMPTY_PATH)
                   : 0;
    if (code < 0)
        return (int)wrap_answer(code);
    if (flags & FAN_MARK_FLUSH) /* of all there are: the path is not looked at */
        return REAL(fanotify_mark)(fd, flags, mask, at, path);
    return (int)WRAPPER_PATH(at, path, wrap_follow(nofollow), REAL(fanotify_mark)(fd, flags, mask, at, path),
                             WRAPPER_THERE(SYS5(SYS_fanotify_mark, fd, flags, mask, t->real_at, t->real_path)));
}
