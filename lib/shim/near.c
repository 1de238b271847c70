/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/near.h"

#include <fcntl.h>
#include <string.h>

#include "base/owner.h"
#include "base/sys.h"
#include "index/record.h"
#include "shim/process.h"
#include "union/layout.h"

#define LOWEST 1000 /* below the 1,024 that a process may have open usually */
#define LEAVES 8    /* of a root; who works in more at once has the longer way to some */
#define UNTRIED 0
#define NEVER (-1)
#define CHANGES 0x80000000u

/* A directory that is kept open. */
struct kept {
    int fd;
    uint64_t ino;
};

/* Its descriptor stays what it is while somebody uses it. Who finds it unused may have it say CHANGES, and
 * puts another one there. After a fork in the middle of that, or of a use, it stays so in the child: one
 * fewer. */
struct leaf {
    uint32_t users;
    uint64_t key; /* of the place; 0: none */
    struct kept kept;
    size_t length;
    char place[NEAR_PLACE_MAX + 1];
};

static struct near {
    struct kept branches;
    struct leaf leaves[LEAVES];
    uint32_t next; /* to be replaced */
} nears[NAMES_ROOTS];

/* The memory of a vfork child is its parent's, its descriptors are not. */
static bool may_keep(void)
{
    return sys_getpid() == owner_pid();
}

static struct near *near_of(const struct names_root *root)
{
    return &nears[root - process.roots];
}

/* That it is the directory which was opened, and no other file of that number. */
static bool is_it(const struct names_root *root, const struct kept *kept)
{
    struct statx stat;
    return sys_statx(kept->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &stat) == 0 &&
           stat.stx_ino == kept->ino && names_device(&stat) == root->device;
}

static int open_directory(int at, const char *path)
{
    return sys_openat(at, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

/* Puts `fd`, which is closed, where it is out of the program's way. False: it cannot be. */
static bool keep(int fd, struct kept *to)
{
    struct statx stat = {0};
    if (fd < 0)
        return false;
    int code = sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &stat);
    *to = (struct kept){code == 0 ? (int)SYS3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, LOWEST) : NEVER, stat.stx_ino};
    sys_close(fd);
    return to->fd >= 0;
}

/* In two steps, since a path would take more room than a signal's stack has. */
static bool open_branches(const struct names_root *root, struct kept *to)
{
    int top = open_directory(AT_FDCWD, root->path);
    int fd = top >= 0 ? open_directory(top, LAYOUT_BRANCHES) : NEVER;
    if (top >= 0)
        sys_close(top);
    return keep(fd, to);
}

/* Once in a process; of two threads that try, the second has opened it in vain. */
static void try(const struct names_root *root, struct kept *branches)
{
    struct kept opened = {0};
    int untried = UNTRIED;
    if (!may_keep())
        return;
    bool is_open = open_branches(root, &opened);
    if (is_open)
        __atomic_store_n(&branches->ino, opened.ino, __ATOMIC_RELAXED);
    if (!__atomic_compare_exchange_n(&branches->fd, &untried, is_open ? opened.fd : NEVER, false,
                                     __ATOMIC_RELEASE, __ATOMIC_RELAXED) &&
        is_open)
        sys_close(opened.fd);
}

bool near_branches(const struct names_root *root, int *directory)
{
    struct kept *branches = &near_of(root)->branches;
    if (__atomic_load_n(&branches->fd, __ATOMIC_ACQUIRE) == UNTRIED)
        try(root, branches);
    *directory = __atomic_load_n(&branches->fd, __ATOMIC_ACQUIRE);
    return *directory >= 0 && is_it(root, branches);
}

/* Leaves. */

static void stop_using(struct leaf *leaf)
{
    __atomic_sub_fetch(&leaf->users, 1, __ATOMIC_RELEASE);
}

/* Is it that place's? Then it is used. */
static bool use(struct leaf *leaf, uint64_t key, const char *place, size_t length)
{
    if (__atomic_load_n(&leaf->key, __ATOMIC_RELAXED) != key)
        return false;
    uint32_t users = __atomic_add_fetch(&leaf->users, 1, __ATOMIC_ACQUIRE);
    if (!(users & CHANGES) && leaf->key == key && leaf->length == length &&
        memcmp(leaf->place, place, length) == 0)
        return true;
    stop_using(leaf);
    return false;
}

static bool begin_change(struct leaf *leaf)
{
    uint32_t unused = 0;
    return __atomic_compare_exchange_n(&leaf->users, &unused, CHANGES, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void end_change(struct leaf *leaf)
{
    __atomic_sub_fetch(&leaf->users, CHANGES, __ATOMIC_RELEASE);
}

/* What the program has put there is left alone. */
static void drop(const struct names_root *root, struct leaf *leaf)
{
    if (leaf->key != 0 && is_it(root, &leaf->kept))
        sys_close(leaf->kept.fd);
    __atomic_store_n(&leaf->key, 0, __ATOMIC_RELAXED);
}

static bool open_leaf(const struct names_root *root, struct leaf *to, const char *place, size_t length)
{
    int branches;
    memcpy(to->place, place, length);
    to->place[length] = '\0';
    to->length = length;
    return near_branches(root, &branches) && keep(open_directory(branches, to->place), &to->kept);
}

/* -1, or which it is, in use. */
static int replace(const struct names_root *root, struct near *near, uint64_t key, const char *place,
                   size_t length)
{
    struct leaf opened;
    if (!may_keep() || !open_leaf(root, &opened, place, length))
        return -1;
    unsigned number = __atomic_fetch_add(&near->next, 1, __ATOMIC_RELAXED) % LEAVES;
    struct leaf *leaf = &near->leaves[number];
    if (!begin_change(leaf)) {
        sys_close(opened.kept.fd);
        return -1;
    }
    drop(root, leaf);
    leaf->kept = opened.kept;
    leaf->length = length;
    memcpy(leaf->place, place, length);
    __atomic_add_fetch(&leaf->users, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&leaf->key, key, __ATOMIC_RELAXED);
    end_change(leaf);
    return (int)number;
}

bool near_leaf_is_kept(const struct names_root *root, int leaf)
{
    return is_it(root, &near_of(root)->leaves[leaf].kept);
}

static int find(struct near *near, uint64_t key, const char *place, size_t length)
{
    for (int i = 0; i < LEAVES; i++)
        if (use(&near->leaves[i], key, place, length))
            return i;
    return -1;
}

int near_leaf(const struct names_root *root, const char *place, size_t length, int *directory)
{
    struct near *near = near_of(root);
    if (length > NEAR_PLACE_MAX)
        return -1;
    uint64_t key = record_hash(place, length);
    int number = find(near, key, place, length);
    if (number < 0)
        number = replace(root, near, key, place, length);
    if (number < 0)
        return -1;
    *directory = near->leaves[number].kept.fd;
    if (near_leaf_is_kept(root, number))
        return number;
    near_give(root, number);
    return -1;
}

void near_give(const struct names_root *root, int leaf)
{
    stop_using(&near_of(root)->leaves[leaf]);
}

void near_give_up(const struct names_root *root, int number)
{
    struct leaf *leaf = &near_of(root)->leaves[number];
    stop_using(leaf);
    if (may_keep() && begin_change(leaf)) {
        drop(root, leaf);
        end_change(leaf);
    }
}
