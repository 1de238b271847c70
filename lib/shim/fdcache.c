/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/fdcache.h"

#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/owner.h"
#include "base/sys.h"
#include "index/record.h"
#include "shim/process.h"
#include "shim/state.h"
#include "union/layout.h"

#define OFTEN 16 /* so much more is a leaf opened than a look by its path costs */
#define UNTRIED 0
#define NEVER (-1)
#define CHANGES 0x80000000u

/* The memory of a vfork child is its parent's, its descriptors are not. */
static bool fdcache_may_keep(void)
{
    return sys_getpid() == owner_pid();
}

static struct fdcache_root *fdcache_near_of(const struct names_root *root)
{
    return &shim_state.fdcache.roots[root - shim_state.roots];
}

/* That it is the directory which was opened, and no other file of that number. */
static bool fdcache_is_it(const struct names_root *root, const struct fdcache_kept *kept)
{
    struct statx stat;
    return sys_statx(kept->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &stat) == 0 && stat.stx_ino == kept->ino &&
           names_device(&stat) == root->device;
}

static int fdcache_open_directory(int at, const char *path)
{
    return sys_openat(at, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

/* Puts `fd`, which is closed, where it is out of the program's way. False: it cannot be. */
static bool fdcache_keep(int fd, struct fdcache_kept *to)
{
    struct statx stat = {0};
    if (fd < 0)
        return false;
    int code = sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &stat);
    *to = (struct fdcache_kept){code == 0 ? (int)SYS3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, NEAR_LOWEST) : NEVER, stat.stx_ino};
    sys_close(fd);
    return to->fd >= 0;
}

/* In two steps, since a path would take more room than a signal's stack has. */
static bool fdcache_open_branches(const struct names_root *root, struct fdcache_kept *to)
{
    int top = fdcache_open_directory(AT_FDCWD, root->path);
    int fd = top >= 0 ? fdcache_open_directory(top, LAYOUT_BRANCHES) : NEVER;
    if (top >= 0)
        sys_close(top);
    return fdcache_keep(fd, to);
}

/* Of two threads that try, the second has opened it for nothing. */
static void fdcache_try(const struct names_root *root, struct fdcache_kept *branches)
{
    struct fdcache_kept opened = {0};
    int untried = UNTRIED;
    if (!fdcache_may_keep())
        return;
    bool is_open = fdcache_open_branches(root, &opened);
    if (is_open)
        __atomic_store_n(&branches->ino, opened.ino, __ATOMIC_RELAXED);
    if (!__atomic_compare_exchange_n(&branches->fd, &untried, is_open ? opened.fd : NEVER, false, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED) &&
        is_open)
        sys_close(opened.fd);
}

bool fdcache_branches(const struct names_root *root, int *directory)
{
    struct fdcache_kept *branches = &fdcache_near_of(root)->branches;
    if (__atomic_load_n(&branches->fd, __ATOMIC_ACQUIRE) == UNTRIED)
        fdcache_try(root, branches);
    int fd = *directory = __atomic_load_n(&branches->fd, __ATOMIC_ACQUIRE);
    if (fd > 0 && fdcache_is_it(root, branches))
        return true;
    if (fd > 0 && fdcache_may_keep())
        __atomic_compare_exchange_n(&branches->fd, &fd, UNTRIED, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return false;
}

/* Those that are replaced by others. */

static void fdcache_stop_using(struct fdcache_entry *one)
{
    __atomic_sub_fetch(&one->users, 1, __ATOMIC_RELEASE);
}

/* Has it that key? Then it is used. */
static bool fdcache_use_key(struct fdcache_table *table, unsigned number, uint64_t key)
{
    struct fdcache_entry *one = &table->all[number];
    if (__atomic_load_n(&table->keys[number], __ATOMIC_RELAXED) != key)
        return false;
    uint32_t users = __atomic_add_fetch(&one->users, 1, __ATOMIC_ACQUIRE);
    if (!(users & CHANGES) && table->keys[number] == key)
        return true;
    fdcache_stop_using(one);
    return false;
}

/* Is it known by that? */
static bool fdcache_use(struct fdcache_table *table, unsigned number, uint64_t key, const void *by, size_t length)
{
    struct fdcache_entry *one = &table->all[number];
    if (!fdcache_use_key(table, number, key))
        return false;
    if (one->length == length && memcmp(one->by, by, length) == 0)
        return true;
    fdcache_stop_using(one);
    return false;
}

static bool fdcache_begin_change(struct fdcache_entry *one)
{
    uint32_t unused = 0;
    return __atomic_compare_exchange_n(&one->users, &unused, CHANGES, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void fdcache_end_change(struct fdcache_entry *one)
{
    __atomic_sub_fetch(&one->users, CHANGES, __ATOMIC_RELEASE);
}

/* What the program has put there is left alone, be it the same directory, which it has opened to read. */
static void fdcache_drop(const struct names_root *root, struct fdcache_table *table, unsigned number)
{
    const struct fdcache_kept *kept = &table->all[number].kept;
    if (table->keys[number] != 0 && fdcache_is_it(root, kept) && (SYS2(SYS_fcntl, kept->fd, F_GETFL) & O_PATH)) {
        sys_close(kept->fd);
        fdcache_changed((unsigned)kept->fd);
    }
    __atomic_store_n(&table->keys[number], 0, __ATOMIC_RELAXED);
}

/* -1, or which it is, in use. */
static int fdcache_find(struct fdcache_table *table, uint64_t key, const void *by, size_t length)
{
    for (unsigned i = 0; i < FDCACHE_ENTRIES; i++)
        if (fdcache_use(table, (unsigned)(key + i) % FDCACHE_ENTRIES, key, by, length))
            return (int)((unsigned)(key + i) % FDCACHE_ENTRIES);
    return -1;
}

static void fdcache_release(struct fdcache_table *table, int number)
{
    fdcache_stop_using(&table->all[number]);
}

/* The same, and nobody shall find it any more. */
static void fdcache_abandon(const struct names_root *root, struct fdcache_table *table, int number)
{
    struct fdcache_entry *one = &table->all[number];
    fdcache_stop_using(one);
    if (fdcache_may_keep() && fdcache_begin_change(one)) {
        fdcache_drop(root, table, (unsigned)number);
        fdcache_end_change(one);
    }
}

/* The first that is free, else each in its turn. */
static unsigned fdcache_place_for(struct fdcache_table *table, uint64_t key)
{
    for (unsigned i = 0; i < FDCACHE_ENTRIES; i++) {
        const unsigned number = (unsigned)(key + i) % FDCACHE_ENTRIES;
        if (__atomic_load_n(&table->keys[number], __ATOMIC_RELAXED) == 0 &&
            __atomic_load_n(&table->all[number].users, __ATOMIC_RELAXED) == 0)
            return number;
    }
    return __atomic_fetch_add(&table->next, 1, __ATOMIC_RELAXED) % FDCACHE_ENTRIES;
}

/* Takes over `kept`, which is closed if there is no room: -1, or which it is, in use. */
static int fdcache_put(const struct names_root *root, struct fdcache_table *table, const struct fdcache_kept *kept,
                       uint64_t key, const void *by, size_t length)
{
    const unsigned number = fdcache_place_for(table, key);
    struct fdcache_entry *one = &table->all[number];
    if (!fdcache_begin_change(one)) {
        sys_close(kept->fd);
        return -1;
    }
    fdcache_drop(root, table, number);
    one->kept = *kept;
    one->seen = 0;
    one->length = length;
    memcpy(one->by, by, length);
    __atomic_add_fetch(&one->users, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&table->keys[number], key, __ATOMIC_RELAXED);
    fdcache_end_change(one);
    return (int)number;
}

/* Leaves. */

static bool fdcache_open_leaf(const struct names_root *root, const char *place, size_t length, struct fdcache_kept *to)
{
    char path[NEAR_PLACE_MAX + 1];
    int branches;
    memcpy(path, place, length);
    path[length] = '\0';
    return fdcache_branches(root, &branches) && fdcache_keep(fdcache_open_directory(branches, path), to);
}

bool fdcache_leaf_is_kept(const struct names_root *root, int leaf)
{
    return fdcache_is_it(root, &fdcache_near_of(root)->leaves.all[leaf].kept);
}

/* Has that been seen since the clock went on, and since the program changed such descriptors? */
static bool fdcache_seems_kept(const struct names_root *root, struct fdcache_entry *one)
{
    const uint64_t now = clock_of(CLOCK_MONOTONIC_COARSE);
    const uint32_t changes = __atomic_load_n(&shim_state.fdcache.changes, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&one->seen, __ATOMIC_RELAXED) == now && __atomic_load_n(&one->changes, __ATOMIC_RELAXED) == changes)
        return true;
    if (!fdcache_is_it(root, &one->kept))
        return false;
    __atomic_store_n(&one->changes, changes, __ATOMIC_RELAXED);
    __atomic_store_n(&one->seen, now, __ATOMIC_RELAXED);
    return true;
}

/* One word for the leaf's key and how often; of two leaves with one word the last. */
static bool fdcache_is_often(uint64_t key)
{
    uint32_t *place = &shim_state.fdcache.looks[key % FDCACHE_LOOKS], before = __atomic_load_n(place, __ATOMIC_RELAXED);
    const uint32_t leaf = (uint32_t)(key >> 32) & ~(OFTEN - 1u);
    const uint32_t times = (before ^ leaf) < OFTEN ? (before ^ leaf) + 1 : 1;
    __atomic_store_n(place, leaf | (times % OFTEN), __ATOMIC_RELAXED);
    return times == OFTEN;
}

static int fdcache_take(const struct names_root *root, struct fdcache_table *leaves, uint64_t key, const char *place,
                        size_t length)
{
    struct fdcache_kept opened;
    return fdcache_may_keep() && fdcache_open_leaf(root, place, length, &opened)
               ? fdcache_put(root, leaves, &opened, key, place, length)
               : -1;
}

/* What is in use, if it is what it was; else it is given up. */
static bool fdcache_hand_out(const struct names_root *root, struct fdcache_table *leaves, int leaf, bool to_look,
                             int *directory)
{
    struct fdcache_entry *one = &leaves->all[leaf];
    *directory = one->kept.fd;
    const bool is_kept = to_look ? fdcache_seems_kept(root, one) : fdcache_is_it(root, &one->kept);
    if (!is_kept)
        fdcache_abandon(root, leaves, leaf);
    return is_kept;
}

int fdcache_leaf(const struct names_root *root, const char *place, size_t length, bool to_look, int *directory)
{
    if (length > NEAR_PLACE_MAX)
        return -1;
    const uint64_t key = record_hash(place, length);
    struct fdcache_table *leaves = &fdcache_near_of(root)->leaves;
    int number = fdcache_find(leaves, key, place, length);
    if (number < 0 && (names_is_slow_lookup(root) || fdcache_is_often(key)))
        number = fdcache_take(root, leaves, key, place, length);
    return number >= 0 && fdcache_hand_out(root, leaves, number, to_look, directory) ? number : -1;
}

uint64_t fdcache_leaf_key(const struct names_root *root, int leaf)
{
    return fdcache_near_of(root)->leaves.keys[leaf];
}

bool fdcache_leaf_again(const struct names_root *root, int leaf, uint64_t key, int *directory)
{
    struct fdcache_table *leaves = &fdcache_near_of(root)->leaves;
    return fdcache_use_key(leaves, (unsigned)leaf, key) && fdcache_hand_out(root, leaves, leaf, true, directory);
}

void fdcache_give(const struct names_root *root, int leaf)
{
    fdcache_release(&fdcache_near_of(root)->leaves, leaf);
}

void fdcache_give_up(const struct names_root *root, int leaf)
{
    fdcache_abandon(root, &fdcache_near_of(root)->leaves, leaf);
}

/* Directories of the trunk. */

static uint64_t fdcache_key_of(struct dirid dir)
{
    return record_sum(&dir, sizeof dir, 0) | 1;
}

void fdcache_keep_trunk(const struct names_root *root, struct dirid dir, int fd)
{
    struct fdcache_table *trunk = &fdcache_near_of(root)->trunk;
    struct fdcache_kept kept;
    int number = fdcache_find(trunk, fdcache_key_of(dir), &dir, sizeof dir);
    if (number >= 0 || !fdcache_may_keep())
        sys_close(fd);
    else if (fdcache_keep(fd, &kept))
        number = fdcache_put(root, trunk, &kept, fdcache_key_of(dir), &dir, sizeof dir);
    if (number >= 0)
        fdcache_release(trunk, number);
}

bool fdcache_trunk_place(const struct names_root *root, struct dirid dir, char to[PATH_MAX])
{
    struct fdcache_table *trunk = &fdcache_near_of(root)->trunk;
    int number = fdcache_find(trunk, fdcache_key_of(dir), &dir, sizeof dir);
    if (number < 0)
        return false;
    const struct fdcache_kept *kept = &trunk->all[number].kept;
    bool is_kept = fdcache_is_it(root, kept) && names_read_place(kept->fd, to) == 0;
    if (is_kept)
        fdcache_release(trunk, number);
    else
        fdcache_abandon(root, trunk, number);
    return is_kept;
}
