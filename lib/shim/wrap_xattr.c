/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Extended attributes that are looked at (those that are changed: wrap_meta.c). Programs ask for them after a file's
 * status, ls -l for two of each file. */

#include <fcntl.h>
#include <sys/xattr.h>

#include "base/sys.h"
#include "shim/state.h"
#include "shim/wrap.h"

/* What is asked of a path seen from a descriptor. */
struct question {
    int flags; /* AT_SYMLINK_NOFOLLOW */
    bool lists;
    const char *name; /* if not */
    void *to;
    size_t size;
};

/* Does the kernel (6.13) have these calls? Asked once; of the descriptor, which is none, it says so first. */
static bool wrap_xattr_is_in_kernel(void)
{
    int *has = &shim_state.abilities.has_xattrat;
    if (__atomic_load_n(has, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(has, sys_getxattrat(-1, "x", 0, "user.x", NULL, 0) == -EBADF ? 1 : -1, __ATOMIC_RELAXED);
    return __atomic_load_n(has, __ATOMIC_RELAXED) == 1;
}

/* A program may have itself refused the calls that it does not know. */
static bool wrap_xattr_is_refused(long answer)
{
    return answer == -ENOSYS || answer == -EPERM;
}

static long wrap_xattr_ask_from(int at, const char *path, const struct question *asked)
{
    if (asked->lists)
        return SYS5(SYS_LISTXATTRAT, at, path, asked->flags, asked->to, asked->size);
    return sys_getxattrat(at, path, asked->flags, asked->name, asked->to, asked->size);
}

static long wrap_xattr_ask_by_path(const char *path, const struct question *asked)
{
    if (asked->lists)
        return SYS3(asked->flags == 0 ? SYS_listxattr : SYS_llistxattr, path, asked->to, asked->size);
    return SYS4(asked->flags == 0 ? SYS_getxattr : SYS_lgetxattr, path, asked->name, asked->to, asked->size);
}

static long wrap_xattr_ask(struct target *to, const struct question *asked)
{
    long answer = -ENOSYS;
    if (wrap_xattr_is_in_kernel())
        answer = TARGET_LOOK(to, to->real_at == AT_FDCWD ? wrap_xattr_ask_by_path(to->real_path, asked)
                                                         : wrap_xattr_ask_from(to->real_at, to->real_path, asked));
    if (wrap_xattr_is_refused(answer))
        answer = TARGET_CALL(to, wrap_xattr_ask_by_path(to->real_path, asked));
    target_done(to);
    return answer;
}

#define WRAPPER_ASK(PATH, ASKED, REAL) WRAPPER_PATH(AT_FDCWD, PATH, wrap_follow((ASKED)->flags), REAL, wrap_xattr_ask(t, ASKED))

WRAPPER ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
    const struct question asked = {0, false, name, value, size};
    WRAPPER_LAUNDER(path);
    return WRAPPER_ASK(path, &asked, REAL(getxattr)(path, name, value, size));
}

WRAPPER ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    const struct question asked = {AT_SYMLINK_NOFOLLOW, false, name, value, size};
    WRAPPER_LAUNDER(path);
    return WRAPPER_ASK(path, &asked, REAL(lgetxattr)(path, name, value, size));
}

WRAPPER ssize_t listxattr(const char *path, char *list, size_t size)
{
    const struct question asked = {0, true, NULL, list, size};
    WRAPPER_LAUNDER(path);
    return WRAPPER_ASK(path, &asked, REAL(listxattr)(path, list, size));
}

WRAPPER ssize_t llistxattr(const char *path, char *list, size_t size)
{
    const struct question asked = {AT_SYMLINK_NOFOLLOW, true, NULL, list, size};
    WRAPPER_LAUNDER(path);
    return WRAPPER_ASK(path, &asked, REAL(llistxattr)(path, list, size));
}
