/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Calls that keep hold of what a path leads to: mounts, swap, accounting, quota. They are rare, and what they hold is to be
 * found under its name afterwards, also by programs without the library: so a file in a branch is moved to the trunk first, and
 * the call is made by the caller's own path. */

#include "shim/wrap_mount.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "shim/promote.h"
#include "shim/wrap.h"

/* Not in the headers of glibc 2.31, or in others that define the same as the kernel's. */
int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
int umount(const char *target);
int umount2(const char *target, int flags);
int pivot_root(const char *root, const char *old);
int open_tree(int at, const char *path, unsigned flags);
int move_mount(int from, const char *path, int to, const char *target, unsigned flags);
int fsconfig(int fs, unsigned command, const char *key, const void *value, int auxiliary);
int fspick(int at, const char *path, unsigned flags);
int mount_setattr(int at, const char *path, unsigned flags, void *attributes, size_t size);
int swapon(const char *path, int flags);
int swapoff(const char *path);
int acct(const char *path);
int quotactl(int command, const char *special, int id, char *address);

enum {
    MOUNT_NOFOLLOW = 8,           /* of umount2 */
    MOUNT_TREE_NOFOLLOW = 0x100,  /* of open_tree and mount_setattr, AT_SYMLINK_NOFOLLOW */
    MOUNT_PICK_NOFOLLOW = 2,      /* of fspick */
    MOUNT_MOVE_FROM_FOLLOWS = 1,  /* of move_mount */
    MOUNT_MOVE_TO_FOLLOWS = 0x10, /* ... */
    MOUNT_SET_STRING = 1,         /* of fsconfig */
    MOUNT_SET_PATH = 3,           /* ... */
    MOUNT_SET_PATH_EMPTY = 4,     /* ... */
    MOUNT_QUOTA_ON = 0x800002,    /* of quotactl, without the kind */
    CALL_OPEN_TREE_ATTR = 467,    /* Linux 6.15; no function makes it */
};

/* A path of a call; NULL: there is none. */
struct mount_path {
    int at;
    const char *path;
    bool follows;
};

static unsigned wrap_mount_want(const struct mount_path *p)
{
    return p->follows ? TARGET_FOLLOW : 0;
}

/* 0, or -errno: the call is not to be made. */
static int wrap_mount_prepare(struct mount_path one, struct mount_path other)
{
    int code = one.path != NULL ? promote_path(one.at, one.path, wrap_mount_want(&one)) : 0;
    return code == 0 && other.path != NULL ? promote_path(other.at, other.path, wrap_mount_want(&other)) : code;
}

static long wrap_mount_ended(long answer, struct mount_path one, struct mount_path other)
{
    if (answer != -1 || errno != ENOENT || !process_has_roots())
        return answer;
    int error = one.path != NULL ? promote_error(one.at, one.path, wrap_mount_want(&one)) : ENOENT;
    if (error == ENOENT && other.path != NULL)
        error = promote_error(other.at, other.path, wrap_mount_want(&other));
    errno = error;
    return answer;
}

/* CALL, which is the original one. */
#define ON_TRUNK_BOTH(ONE, OTHER, CALL)                                                                                        \
    ({                                                                                                                         \
        const struct mount_path one_ = ONE, other_ = OTHER;                                                                    \
        int code_ = process_has_roots() ? wrap_mount_prepare(one_, other_) : 0;                                                \
        code_ != 0 ? wrap_answer(code_) : wrap_mount_ended(CALL, one_, other_);                                                \
    })
#define PATH(AT, PATH, FOLLOWS) ((struct mount_path){AT, PATH, FOLLOWS})
#define ON_TRUNK(AT, PATH_, FOLLOWS, CALL) ON_TRUNK_BOTH(PATH(AT, PATH_, FOLLOWS), PATH(0, NULL, false), CALL)

/* What a file system is made of may be a file: where it is, for one that is mounted like that by the kernel itself. */
WRAPPER int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data)
{
    return (int)ON_TRUNK_BOTH(PATH(AT_FDCWD, source, true), PATH(AT_FDCWD, target, true),
                              REAL(mount)(source, target, type, flags, data));
}

WRAPPER int umount(const char *target)
{
    return (int)ON_TRUNK(AT_FDCWD, target, true, REAL(umount)(target));
}

WRAPPER int umount2(const char *target, int flags)
{
    return (int)ON_TRUNK(AT_FDCWD, target, !(flags & MOUNT_NOFOLLOW), REAL(umount2)(target, flags));
}

WRAPPER int pivot_root(const char *root, const char *old)
{
    process_attach_roots();
    return (int)ON_TRUNK_BOTH(PATH(AT_FDCWD, root, true), PATH(AT_FDCWD, old, true), REAL(pivot_root)(root, old));
}

WRAPPER int open_tree(int at, const char *path, unsigned flags)
{
    return (int)ON_TRUNK(at, path, !(flags & MOUNT_TREE_NOFOLLOW), REAL(open_tree)(at, path, flags));
}

WRAPPER int move_mount(int from, const char *path, int to, const char *target, unsigned flags)
{
    return (int)ON_TRUNK_BOTH(PATH(from, path, flags & MOUNT_MOVE_FROM_FOLLOWS),
                              PATH(to, target, flags & MOUNT_MOVE_TO_FOLLOWS), REAL(move_mount)(from, path, to, target, flags));
}

/* The path that a file system is given, as such or as its source. */
WRAPPER int fsconfig(int fs, unsigned command, const char *key, const void *value, int auxiliary)
{
    const bool is_path = command == MOUNT_SET_PATH || command == MOUNT_SET_PATH_EMPTY;
    const bool is_source = command == MOUNT_SET_STRING && process_can_read(key, sizeof "source") && strcmp(key, "source") == 0;
    return (int)ON_TRUNK(is_path ? auxiliary : AT_FDCWD, is_path || is_source ? value : NULL, true,
                         REAL(fsconfig)(fs, command, key, value, auxiliary));
}

WRAPPER int fspick(int at, const char *path, unsigned flags)
{
    return (int)ON_TRUNK(at, path, !(flags & MOUNT_PICK_NOFOLLOW), REAL(fspick)(at, path, flags));
}

WRAPPER int mount_setattr(int at, const char *path, unsigned flags, void *attributes, size_t size)
{
    return (int)ON_TRUNK(at, path, !(flags & MOUNT_TREE_NOFOLLOW), REAL(mount_setattr)(at, path, flags, attributes, size));
}

WRAPPER int swapon(const char *path, int flags)
{
    return (int)ON_TRUNK(AT_FDCWD, path, true, REAL(swapon)(path, flags));
}

WRAPPER int swapoff(const char *path)
{
    return (int)ON_TRUNK(AT_FDCWD, path, true, REAL(swapoff)(path));
}

WRAPPER int acct(const char *path)
{
    return (int)ON_TRUNK(AT_FDCWD, path, true, REAL(acct)(path));
}

/* Quota is switched on with the path of the file that it is kept in. */
WRAPPER int quotactl(int command, const char *special, int id, char *address)
{
    const bool has_file = (unsigned)command >> 8 == MOUNT_QUOTA_ON;
    return (int)ON_TRUNK_BOTH(PATH(AT_FDCWD, special, true), PATH(AT_FDCWD, has_file ? address : NULL, true),
                              REAL(quotactl)(command, special, id, address));
}

long wrap_mount_call(long number, const long a[6], bool *known)
{
    *known = true;
    switch (number) {
    case SYS_mount:
        return mount((const char *)a[0], (const char *)a[1], (const char *)a[2], (unsigned long)a[3], (const void *)a[4]);
    case SYS_umount2:
        return umount2((const char *)a[0], (int)a[1]);
    case SYS_pivot_root:
        return pivot_root((const char *)a[0], (const char *)a[1]);
    case SYS_open_tree:
        return open_tree((int)a[0], (const char *)a[1], (unsigned)a[2]);
    case CALL_OPEN_TREE_ATTR:
        return ON_TRUNK((int)a[0], (const char *)a[1], !(a[2] & MOUNT_TREE_NOFOLLOW),
                        REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]));
    case SYS_move_mount:
        return move_mount((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3], (unsigned)a[4]);
    case SYS_fsconfig:
        return fsconfig((int)a[0], (unsigned)a[1], (const char *)a[2], (const void *)a[3], (int)a[4]);
    case SYS_fspick:
        return fspick((int)a[0], (const char *)a[1], (unsigned)a[2]);
    case SYS_mount_setattr:
        return mount_setattr((int)a[0], (const char *)a[1], (unsigned)a[2], (void *)a[3], (size_t)a[4]);
    case SYS_swapon:
        return swapon((const char *)a[0], (int)a[1]);
    case SYS_swapoff:
        return swapoff((const char *)a[0]);
    case SYS_acct:
        return acct((const char *)a[0]);
    case SYS_quotactl:
        return quotactl((int)a[0], (const char *)a[1], (int)a[2], (char *)a[3]);
    default:
        *known = false;
        return 0;
    }
}
