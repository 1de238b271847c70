/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/wrap_syscall_new.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "shim/wrap.h"

#define NATIVE(NUMBER, A) REAL(syscall)(NUMBER, (A)[0], (A)[1], (A)[2], (A)[3], (A)[4], (A)[5])

enum {
    CALL_SETXATTRAT = 463, /* Linux 6.13 */
    CALL_REMOVEXATTRAT = 466,
    CALL_FILE_GETATTR = 468, /* Linux 6.17 */
    CALL_FILE_SETATTR,
};

/* A call that begins with (directory, path), on its real place. */
static long wrap_syscall_new_look(long number, const long a[6], int flags)
{
    return WRAPPER_PATH((int)a[0], (const char *)a[1], wrap_follow(flags), NATIVE(number, a),
                        WRAPPER_THERE(SYS6(number, t->real_at, t->real_path, a[2], a[3], a[4], a[5])));
}

/* One that changes what the files born in a directory inherit. */
static long wrap_syscall_new_change(long number, const long a[6], int flags)
{
    long code = wrap_syscall_new_look(number, a, flags);
    if (code == 0 && a[1] != 0)
        directory_follow((int)a[0], (const char *)a[1], flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH));
    return code;
}

long wrap_syscall_new_call(long number, const long a[6], bool *known)
{
    *known = true;
    switch (number) {
    case SYS_GETXATTRAT:
    case SYS_LISTXATTRAT:
        return wrap_syscall_new_look(number, a, (int)a[2]);
    case CALL_SETXATTRAT:
    case CALL_REMOVEXATTRAT:
        return wrap_syscall_new_change(number, a, (int)a[2]);
    case CALL_FILE_GETATTR:
        return wrap_syscall_new_look(number, a, (int)a[4]);
    case CALL_FILE_SETATTR:
        return wrap_syscall_new_change(number, a, (int)a[4]);
    default:
        *known = false;
        return 0;
    }
}

/* Nobody has said that it is one. */
static bool wrap_syscall_new_is_text(const char *at)
{
    return process_check_path(at) == 0 && at[0] != '\0';
}

static bool wrap_syscall_new_is_directory(long argument)
{
    struct statx stat;
    return (int)argument == AT_FDCWD ||
           ((unsigned long)argument <= INT_MAX && sys_statx((int)argument, "", AT_EMPTY_PATH, STATX_TYPE, &stat) == 0 &&
            S_ISDIR(stat.stx_mode));
}

/* Is this path one that the call may not have? 0, or the error. */
static int wrap_syscall_new_objection(int at, const char *path)
{
    struct target t;
    int how = target_find(&t, at, path, TARGET_FOLLOW | TARGET_ALIAS);
    if (how != TARGET_MANAGED)
        return how < 0 && how != -ENOTDIR && how != -ELOOP ? how : 0;
    struct statx stat;
    int code = (int)TARGET_CALL(&t, sys_statx(t.real_at, t.real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat));
    const bool is_refused = code != 0 || target_is_away(&t);
    target_done(&t);
    return is_refused ? -ENOSYS : 0;
}

long wrap_syscall_unknown_call(long number, const long a[6])
{
    for (int i = 0; i < 6; i++) {
        const bool is_seen_from = i > 0 && wrap_syscall_new_is_directory(a[i - 1]);
        if ((i > 0 && !is_seen_from) || !wrap_syscall_new_is_text((const char *)a[i]))
            continue;
        int code = wrap_syscall_new_objection(is_seen_from ? (int)a[i - 1] : AT_FDCWD, (const char *)a[i]);
        if (code != 0)
            return wrap_answer(code);
    }
    return NATIVE(number, a);
}
