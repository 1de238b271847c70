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
#define SHELF 8     /* of a root and a kind; who works in more at once has the longer way to some */
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
struct shelved {
    uint32_t users;
    uint64_t key; /* of what it is known by; 0: none */
    struct kept kept;
    size_t length;
    char by[NEAR_PLACE_MAX + 1]; /* a leaf's place, or the identity of a directory of the trunk */
};

struct shelf {
    struct shelved all[SHELF];
    uint32_t next; /* to be replaced */
};

static struct near {
    struct kept branches;
    struct shelf leaves, trunk;
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

/* Those that are replaced by others. */

static void stop_using(struct shelved *one)
{
    __atomic_sub_fetch(&one->users, 1, __ATOMIC_RELEASE);
}

/* Is it known by that? Then it is used. */
static bool use(struct shelved *one, uint64_t key, const void *by, size_t length)
{
    if (__atomic_load_n(&one->key, __ATOMIC_RELAXED) != key)
        return false;
    uint32_t users = __atomic_add_fetch(&one->users, 1, __ATOMIC_ACQUIRE);
    if (!(users & CHANGES) && one->key == key && one->length == length && memcmp(one->by, by, length) == 0)
        return true;
    stop_using(one);
    return false;
}

static bool begin_change(struct shelved *one)
{
    uint32_t unused = 0;
    return __atomic_compare_exchange_n(&one->users, &unused, CHANGES, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void end_change(struct shelved *one)
{
    __atomic_sub_fetch(&one->users, CHANGES, __ATOMIC_RELEASE);
}

/* What the program has put there is left alone, be it the same directory, which it has opened to read. */
static void drop(const struct names_root *root, struct shelved *one)
{
    if (one->key != 0 && is_it(root, &one->kept) && (SYS2(SYS_fcntl, one->kept.fd, F_GETFL) & O_PATH))
        sys_close(one->kept.fd);
    __atomic_store_n(&one->key, 0, __ATOMIC_RELAXED);
}

/* -1, or which it is, in use. */
static int find(struct shelf *shelf, uint64_t key, const void *by, size_t length)
{
    for (int i = 0; i < SHELF; i++)
        if (use(&shelf->all[i], key, by, length))
            return i;
    return -1;
}

static void give(struct shelf *shelf, int number)
{
    stop_using(&shelf->all[number]);
}

/* The same, and nobody shall find it any more. */
static void give_up(const struct names_root *root, struct shelf *shelf, int number)
{
    struct shelved *one = &shelf->all[number];
    stop_using(one);
    if (may_keep() && begin_change(one)) {
        drop(root, one);
        end_change(one);
    }
}

/* Takes over `kept`, which is closed if there is no room: -1, or which it is, in use. */
static int put(const struct names_root *root, struct shelf *shelf, const struct kept *kept, uint64_t key,
               const void *by, size_t length)
{
    unsigned number = __atomic_fetch_add(&shelf->next, 1, __ATOMIC_RELAXED) % SHELF;
    struct shelved *one = &shelf->all[number];
    if (!begin_change(one)) {
        sys_close(kept->fd);
        return -1;
    }
    drop(root, one);
    one->kept = *kept;
    one->length = length;
    memcpy(one->by, by, length);
    __atomic_add_fetch(&one->users, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&one->key, key, __ATOMIC_RELAXED);
    end_change(one);
    return (int)number;
}

/* Leaves. */

static bool open_leaf(const struct names_root *root, const char *place, size_t length, struct kept *to)
{
    char path[NEAR_PLACE_MAX + 1];
    int branches;
    memcpy(path, place, length);
    path[length] = '\0';
    return near_branches(root, &branches) && keep(open_directory(branches, path), to);
}

bool near_leaf_is_kept(const struct names_root *root, int leaf)
{
    return is_it(root, &near_of(root)->leaves.all[leaf].kept);
}

int near_leaf(const struct names_root *root, const char *place, size_t length, int *directory)
{
    struct shelf *leaves = &near_of(root)->leaves;
    struct kept opened;
    if (length > NEAR_PLACE_MAX)
        return -1;
    uint64_t key = record_hash(place, length);
    int number = find(leaves, key, place, length);
    if (number < 0 && may_keep() && open_leaf(root, place, length, &opened))
        number = put(root, leaves, &opened, key, place, length);
    if (number < 0)
        return -1;
    *directory = leaves->all[number].kept.fd;
    if (near_leaf_is_kept(root, number))
        return number;
    near_give(root, number);
    return -1;
}

void near_give(const struct names_root *root, int leaf)
{
    give(&near_of(root)->leaves, leaf);
}

void near_give_up(const struct names_root *root, int leaf)
{
    give_up(root, &near_of(root)->leaves, leaf);
}

/* Directories of the trunk. */

static uint64_t key_of(struct dirid dir)
{
    return record_sum(&dir, sizeof dir, 0) | 1;
}

void near_keep_trunk(const struct names_root *root, struct dirid dir, int fd)
{
    struct shelf *trunk = &near_of(root)->trunk;
    struct kept kept;
    int number = find(trunk, key_of(dir), &dir, sizeof dir);
    if (number >= 0 || !may_keep())
        sys_close(fd);
    else if (keep(fd, &kept))
        number = put(root, trunk, &kept, key_of(dir), &dir, sizeof dir);
    if (number >= 0)
        give(trunk, number);
}

bool near_trunk_place(const struct names_root *root, struct dirid dir, char to[PATH_MAX])
{
    struct shelf *trunk = &near_of(root)->trunk;
    int number = find(trunk, key_of(dir), &dir, sizeof dir);
    if (number < 0)
        return false;
    const struct kept *kept = &trunk->all[number].kept;
    bool is_kept = is_it(root, kept) && names_read_place(kept->fd, to) == 0;
    if (is_kept)
        give(trunk, number);
    else
        give_up(root, trunk, number);
    return is_kept;
}
