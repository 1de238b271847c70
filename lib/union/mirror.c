/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/mirror.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/sys.h"
#include "base/text.h"
#include "union/disk.h"
#include "union/inherit.h"
#include "union/layout.h"

#define MIRROR_NEW ".new-"
#define MIRROR_BUFFER 16384

static int mirror_open_branch(const char *branch_path)
{
    return sys_openat(AT_FDCWD, branch_path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

static int mirror_open_mirror(const char *branch_path, const char *mirror)
{
    int branch = mirror_open_branch(branch_path);
    if (branch < 0)
        return branch;
    int fd = sys_openat(branch, mirror, DISK_DIRECTORY, 0);
    sys_close(branch);
    return fd;
}

static bool mirror_same_device(int fd, const struct inherit *from)
{
    struct statx stat;
    return sys_statx(fd, "", AT_EMPTY_PATH, STATX_INO, &stat) == 0 && disk_device(&stat) == disk_device(&from->stat);
}

/* A default ACL, or a umask, may have kept even its owner from a directory that was just made. */
static int mirror_open_made(int dir, const char *name)
{
    int fd = sys_openat(dir, name, DISK_DIRECTORY, 0);
    if (fd != -EACCES)
        return fd;
    int error = (int)SYS3(SYS_fchmodat, dir, name, 0700);
    return error < 0 ? error : sys_openat(dir, name, DISK_DIRECTORY, 0);
}

/* Makes `dir`/`name` equal, once it is there: `made` is what mkdir said. A descriptor in *fd with 0; else what was made is gone
 * again. */
static int mirror_make_equal(const struct inherit *from, int dir, const char *name, int made, int *fd)
{
    int answer = *fd = made == 0 ? mirror_open_made(dir, name) : sys_openat(dir, name, DISK_DIRECTORY, 0);
    if (*fd >= 0) {
        answer = inherit_apply(from, *fd);
        if (answer == 0)
            return 0;
        sys_close(*fd);
    }
    if (made == 0)
        sys_unlinkat(dir, name, AT_REMOVEDIR);
    return answer;
}

static void mirror_number_name(char *to, size_t size, uint32_t leaf)
{
    struct text t;
    text_init(&t, to, size);
    text_number(&t, leaf, 10);
}

static void mirror_temporary_name(char *to, size_t size, uint32_t leaf)
{
    struct text t;
    text_init(&t, to, size);
    text_add(&t, MIRROR_NEW);
    text_number(&t, (uint64_t)sys_getpid(), 10);
    text_add(&t, "-");
    text_number(&t, leaf, 10);
}

static bool mirror_has_leaf(int mirror, const char *name)
{
    struct statx stat;
    return sys_statx(mirror, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == 0;
}

/* A process of this number that died may have left one. */
static int mirror_make_temporary(int mirror, const char *name)
{
    int error = sys_mkdirat(mirror, name, 0700);
    if (error != -EEXIST)
        return error;
    sys_unlinkat(mirror, name, AT_REMOVEDIR);
    return sys_mkdirat(mirror, name, 0700);
}

/* On a file system with a server each call is a request: nothing is looked for in a mirror that was just made. */
static int mirror_make_leaf(const struct inherit *from, int mirror, bool is_new, uint32_t leaf)
{
    char name[16], temporary[48];
    struct disk_rename renaming = {.careful = false}; /* a directory has no second link */
    mirror_number_name(name, sizeof name, leaf);
    mirror_temporary_name(temporary, sizeof temporary, leaf);
    if (!is_new && mirror_has_leaf(mirror, name))
        return -EEXIST;
    int answer = mirror_make_temporary(mirror, temporary);
    if (answer < 0)
        return answer;
    int fd;
    answer = mirror_make_equal(from, mirror, temporary, 0, &fd);
    if (answer != 0)
        return answer;
    sys_close(fd);
    answer = disk_rename_next(&renaming, mirror, temporary, mirror, name);
    if (answer < 0)
        sys_unlinkat(mirror, temporary, AT_REMOVEDIR);
    return answer;
}

/* A mirror that was there before has leaves, or will have: rmdir leaves it alone, or does no harm. */
static int mirror_make_both(struct inherit *from, int branch, const char *mirror, uint32_t leaf)
{
    if (!mirror_same_device(branch, from))
        return RECORD_WHY_DEVICE;
    int made = sys_mkdirat(branch, mirror, 0700);
    if (made < 0 && made != -EEXIST)
        return made;
    int fd;
    int answer = mirror_make_equal(from, branch, mirror, made, &fd);
    if (answer != 0)
        return answer;
    from->in_equal = true;
    answer = mirror_make_leaf(from, fd, made == 0, leaf);
    sys_close(fd);
    if (answer != 0 && answer != -EEXIST)
        sys_unlinkat(branch, mirror, AT_REMOVEDIR);
    return answer;
}

int mirror_make(int trunk, const char *branch_path, const char *mirror, uint32_t leaf)
{
    if (leaf >= LAYOUT_LEAF_MAX)
        return -EOVERFLOW;
    struct inherit from;
    int answer = inherit_init(&from, trunk);
    if (answer == 0 && from.unread)
        answer = RECORD_WHY_FLAGS;
    if (answer != 0)
        return answer;
    int branch = mirror_open_branch(branch_path);
    if (branch < 0)
        return branch;
    answer = mirror_make_both(&from, branch, mirror, leaf);
    sys_close(branch);
    return answer;
}

/* Calls `visit` for each leaf until one fails; the first positive answer, if any, is the answer. */
typedef int mirror_visit(int mirror, const char *leaf, const void *argument);

static int mirror_each_leaf(int mirror, mirror_visit *visit, const void *argument)
{
    char buffer[MIRROR_BUFFER] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    uint32_t leaf;
    int answer = 0;
    int more = disk_scan_init(&scan, mirror, ".", buffer, sizeof buffer);
    while (more >= 0 && (more = disk_scan_next(&scan, &one)) > 0) {
        if (!layout_number(one->name, strlen(one->name), &leaf))
            continue;
        more = visit(mirror, one->name, argument);
        answer = answer ? answer : more;
    }
    disk_scan_finish(&scan);
    return more < 0 ? more : answer;
}

/* With 0 for what is no directory or went meanwhile. */
static int mirror_open_leaf(int mirror, const char *leaf, int *fd)
{
    *fd = sys_openat(mirror, leaf, DISK_DIRECTORY, 0);
    if (*fd >= 0)
        return 1;
    return *fd == -ENOENT || *fd == -ENOTDIR || *fd == -ELOOP ? 0 : *fd;
}

/* Another node may have changed it meanwhile, if its own node is no member: it is asked for as it is now, as the trunk is. */
static int mirror_follow_one(const struct inherit *from, int fd)
{
    struct statx stat;
    const int error = sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_MODE, &stat);
    return error == 0 ? inherit_apply(from, fd) : error;
}

static int mirror_follow_leaf(int mirror, const char *leaf, const void *from)
{
    int fd;
    int answer = mirror_open_leaf(mirror, leaf, &fd);
    if (answer <= 0)
        return answer;
    answer = mirror_follow_one(from, fd);
    sys_close(fd);
    return answer;
}

/* What one cannot follow, the others still do. */
static int mirror_follow_all(struct inherit *from, int mirror)
{
    int answer = mirror_follow_one(from, mirror);
    if (answer < 0)
        return answer;
    from->in_equal = answer == 0;
    int leaves = mirror_each_leaf(mirror, mirror_follow_leaf, from);
    return leaves < 0 || answer == 0 ? leaves : answer;
}

int mirror_follow(int trunk, const char *branch_path, const char *mirror)
{
    int fd = mirror_open_mirror(branch_path, mirror);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    struct inherit from;
    int answer = inherit_init(&from, trunk);
    if (answer == 0 && !mirror_same_device(fd, &from))
        answer = RECORD_WHY_DEVICE;
    if (answer == 0)
        answer = mirror_follow_all(&from, fd);
    sys_close(fd);
    return answer;
}

static int mirror_sync_leaf(int mirror, const char *leaf, const void *unused)
{
    int fd;
    int answer = mirror_open_leaf(mirror, leaf, &fd);
    if (answer <= 0)
        return answer;
    answer = (int)SYS1(SYS_fsync, fd);
    sys_close(fd);
    return answer;
}

int mirror_sync(const char *branch_path, const char *mirror)
{
    int fd = mirror_open_mirror(branch_path, mirror);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    int error = mirror_each_leaf(fd, mirror_sync_leaf, NULL);
    if (error == 0)
        error = (int)SYS1(SYS_fsync, fd);
    sys_close(fd);
    return error;
}

static bool mirror_is_leaf_or_new(const char *name)
{
    uint32_t leaf;
    return layout_number(name, strlen(name), &leaf) || !strncmp(name, MIRROR_NEW, sizeof MIRROR_NEW - 1);
}

/* One pass. How many went, or -errno. Some file systems skip names when others go meanwhile. */
static int mirror_remove_leaves(int mirror)
{
    char buffer[MIRROR_BUFFER] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    int gone = 0, error = 0;
    int more = disk_scan_init(&scan, mirror, ".", buffer, sizeof buffer);
    while (more >= 0 && error == 0 && (more = disk_scan_next(&scan, &one)) > 0) {
        if (!mirror_is_leaf_or_new(one->name))
            continue;
        error = sys_unlinkat(mirror, one->name, AT_REMOVEDIR);
        gone += error == 0;
        if (error == -ENOENT)
            error = 0;
    }
    disk_scan_finish(&scan);
    if (error == 0 && more < 0)
        error = more;
    return error == -EEXIST || error == -ENOTDIR ? -ENOTEMPTY : error < 0 ? error : gone;
}

/* 0 or -errno. */
static int mirror_remove_all_leaves(int mirror)
{
    int more = 1;
    while (more > 0)
        more = mirror_remove_leaves(mirror);
    return more;
}

/* Its directory may be closed to its owner, as rmdir does not mind: it has that mode again where something stays. */
static int mirror_remove_closed_leaves(int mirror)
{
    struct statx stat;
    int error = sys_statx(mirror, "", AT_EMPTY_PATH, STATX_MODE, &stat);
    if (error == 0)
        error = sys_fchmod(mirror, (stat.stx_mode & 07777) | 0700);
    if (error < 0)
        return -EACCES;
    error = mirror_remove_all_leaves(mirror);
    if (error < 0)
        sys_fchmod(mirror, stat.stx_mode & 07777);
    return error;
}

int mirror_remove(const char *branch_path, const char *mirror)
{
    int branch = mirror_open_branch(branch_path);
    if (branch < 0)
        return branch == -ENOENT ? 0 : branch;
    int fd = sys_openat(branch, mirror, DISK_DIRECTORY, 0);
    int error = fd < 0 ? fd : mirror_remove_all_leaves(fd);
    if (error == -EACCES && fd >= 0)
        error = mirror_remove_closed_leaves(fd);
    if (fd >= 0)
        sys_close(fd);
    if (error == 0)
        error = sys_unlinkat(branch, mirror, AT_REMOVEDIR);
    sys_close(branch);
    if (error == -EEXIST)
        return -ENOTEMPTY;
    return error == -ENOENT ? 0 : error;
}
