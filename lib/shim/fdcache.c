/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/fdcache.h"

#include <fcntl.h>
#include <string.h>

#include "base/hook.h"
#include "base/owner.h"
#include "base/sys.h"
#include "index/record.h"
#include "union/layout.h"

#define UNTRIED 0
#define NEVER (-1)

/* Keys that are none. */
#define FREE 0
#define TAKEN 1 /* and perhaps filled in just now; or lost, and never used again */

/* The memory of a vfork child is its parent's, its descriptors are not. */
static bool fdcache_may_keep(void)
{
    return sys_getpid() == owner_pid();
}

static struct fdcache_root *fdcache_of_root(const struct names_root *root)
{
    return &shim_state.fdcache.roots[root - shim_state.roots];
}

/* That it is the directory which was opened, and no other file of that number. */
static bool fdcache_is_it(const struct names_root *root, const struct fdcache_kept *kept)
{
    struct statx stat;
    return BROKEN("number-unseen") || (sys_statx(kept->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &stat) == 0 &&
                                       stat.stx_ino == kept->ino && names_device(&stat) == root->device);
}

static int fdcache_open_directory(int at, const char *path)
{
    return sys_openat(at, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

/* Puts `fd`, which is closed, where it is out of the program's way. False: it cannot be. */
static bool fdcache_keep(int fd, struct fdcache_kept *to)
{
    struct statx stat = {0};
    int code = sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &stat);
    *to = (struct fdcache_kept){code == 0 ? (int)SYS3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FDCACHE_LOWEST) : NEVER, stat.stx_ino};
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
    return fd >= 0 && fdcache_keep(fd, to);
}

/* Of two threads that try, the second has opened it for nothing, and leaves it there. */
static void fdcache_try(const struct names_root *root, struct fdcache_root *cache)
{
    struct fdcache_kept opened = {0};
    int untried = UNTRIED;
    if (!fdcache_may_keep())
        return;
    const bool is_open =
        __atomic_fetch_add(&cache->tries, 1, __ATOMIC_RELAXED) < FDCACHE_TRIES && fdcache_open_branches(root, &opened);
    if (is_open)
        __atomic_store_n(&cache->branches.ino, opened.ino, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(&cache->branches.fd, &untried, is_open ? opened.fd : NEVER, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
}

bool fdcache_branches(const struct names_root *root, int *directory)
{
    struct fdcache_root *cache = fdcache_of_root(root);
    if (__atomic_load_n(&cache->branches.fd, __ATOMIC_ACQUIRE) == UNTRIED)
        fdcache_try(root, cache);
    int fd = __atomic_load_n(&cache->branches.fd, __ATOMIC_ACQUIRE);
    const struct fdcache_kept kept = {fd, __atomic_load_n(&cache->branches.ino, __ATOMIC_RELAXED)};
    *directory = fd;
    if (fd > 0 && fdcache_is_it(root, &kept))
        return true;
    if (fd > 0 && fdcache_may_keep())
        __atomic_compare_exchange_n(&cache->branches.fd, &fd, UNTRIED, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return false;
}

/* Leaves. */

static unsigned fdcache_slot(uint64_t key, unsigned i)
{
    return (unsigned)(key + i) % FDCACHE_LEAVES;
}

static bool fdcache_has(struct fdcache_root *cache, unsigned number, uint64_t key, const char *place, size_t length)
{
    const struct fdcache_entry *one = &cache->leaves[number];
    return __atomic_load_n(&cache->keys[number], __ATOMIC_ACQUIRE) == key && one->length == length &&
           memcmp(one->place, place, length) == 0;
}

/* -1, or which it is. */
static int fdcache_find(struct fdcache_root *cache, uint64_t key, const char *place, size_t length)
{
    for (unsigned i = 0; i < FDCACHE_LEAVES; i++)
        if (fdcache_has(cache, fdcache_slot(key, i), key, place, length))
            return (int)fdcache_slot(key, i);
    return -1;
}

/* -1, or one for this thread alone. */
static int fdcache_take_free(struct fdcache_root *cache, uint64_t key)
{
    for (unsigned i = 0; i < FDCACHE_LEAVES; i++) {
        uint64_t free = FREE;
        if (__atomic_compare_exchange_n(&cache->keys[fdcache_slot(key, i)], &free, TAKEN, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return (int)fdcache_slot(key, i);
    }
    return -1;
}

static int fdcache_open_leaf(const struct names_root *root, const char *place, size_t length)
{
    char path[FDCACHE_PLACE_MAX + 1];
    int branches;
    memcpy(path, place, length);
    path[length] = '\0';
    return fdcache_branches(root, &branches) ? fdcache_open_directory(branches, path) : NEVER;
}

static int fdcache_take(const struct names_root *root, struct fdcache_root *cache, uint64_t key, const char *place,
                        size_t length)
{
    const int number = fdcache_may_keep() ? fdcache_take_free(cache, key) : -1;
    const int fd = number >= 0 ? fdcache_open_leaf(root, place, length) : NEVER;
    if (number < 0)
        return -1;
    struct fdcache_entry *one = &cache->leaves[number];
    const bool is_kept = fd >= 0 && fdcache_keep(fd, &one->kept);
    one->length = length;
    memcpy(one->place, place, length);
    __atomic_store_n(&cache->keys[number], is_kept ? key : fd >= 0 ? TAKEN : FREE, __ATOMIC_RELEASE);
    return is_kept ? number : -1;
}

static void fdcache_lose(struct fdcache_root *cache, int number)
{
    if (fdcache_may_keep())
        __atomic_store_n(&cache->keys[number], TAKEN, __ATOMIC_RELAXED);
}

/* -1, or which it is. */
static int fdcache_find_or_take(const struct names_root *root, struct fdcache_root *cache, const char *place, size_t length)
{
    const uint64_t key = record_hash(place, length) | 2;
    const int number = fdcache_find(cache, key, place, length);
    return number >= 0 ? number : fdcache_take(root, cache, key, place, length);
}

bool fdcache_pin_leaf(const struct names_root *root, const char *place, size_t length, int *leaf, int *own)
{
    struct fdcache_root *cache = fdcache_of_root(root);
    const int number = length <= FDCACHE_PLACE_MAX ? fdcache_find_or_take(root, cache, place, length) : -1;
    if (number < 0)
        return false;
    const struct fdcache_kept *kept = &cache->leaves[number].kept;
    *leaf = number;
    *own = BROKEN("leaf-unpinned") ? kept->fd : fdcache_open_directory(kept->fd, ".");
    const bool is_it = *own >= 0 && fdcache_is_it(root, &(struct fdcache_kept){*own, kept->ino});
    if (*own >= 0 && !is_it)
        sys_close(*own);
    if (!is_it && *own != -EMFILE && *own != -ENFILE)
        fdcache_lose(cache, number);
    return is_it;
}

bool fdcache_leaf_held(const struct names_root *root, int leaf, int own)
{
    return fdcache_is_it(root, &(struct fdcache_kept){own, fdcache_of_root(root)->leaves[leaf].kept.ino});
}

void fdcache_lose_leaf(const struct names_root *root, int leaf)
{
    fdcache_lose(fdcache_of_root(root), leaf);
}
