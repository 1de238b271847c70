/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/near.h"

#include <fcntl.h>

#include "base/sys.h"
#include "union/layout.h"

#define LOWEST 1000 /* below the 1,024 that a process may have open usually */
#define UNTRIED 0
#define NEVER (-1)

/* That it is the directory which was opened, and no other file of that number. */
static bool is_it(const struct names_root *root, int fd, uint64_t ino)
{
    struct statx stat;
    return sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &stat) == 0 && stat.stx_ino == ino &&
           names_device(&stat) == root->device;
}

/* In two steps, since a path would take more room than a signal's stack has. A negative number: it cannot be. */
static int open_branches(const struct names_root *root)
{
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int top = sys_openat(AT_FDCWD, root->path, flags, 0);
    int fd = top >= 0 ? sys_openat(top, LAYOUT_BRANCHES, flags, 0) : NEVER;
    int high = fd >= 0 ? (int)SYS3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, LOWEST) : NEVER;
    if (top >= 0)
        sys_close(top);
    if (fd >= 0)
        sys_close(fd);
    return high;
}

/* Once in a process; of two threads that try, the second has opened it in vain. */
static void try(struct names_root *root)
{
    struct statx stat;
    int fd = open_branches(root), untried = UNTRIED;
    if (fd >= 0 && sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &stat) == 0)
        __atomic_store_n(&root->near_ino, stat.stx_ino, __ATOMIC_RELAXED);
    if (!__atomic_compare_exchange_n(&root->near, &untried, fd >= 0 ? fd : NEVER, false, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED) &&
        fd >= 0)
        sys_close(fd);
}

bool near_branches(struct names_root *root, int *directory)
{
    if (!names_is_far(root))
        return false;
    if (__atomic_load_n(&root->near, __ATOMIC_ACQUIRE) == UNTRIED)
        try(root);
    *directory = __atomic_load_n(&root->near, __ATOMIC_ACQUIRE);
    return *directory >= 0 && is_it(root, *directory, root->near_ino);
}
