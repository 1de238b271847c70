/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "leaving/live_pass.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/sys.h"
#include "cli/command.h"
#include "cli/stopping.h"
#include "shim/visible_path.h"
#include "union/disk.h"

#define LIVE_BATCH 64                       /* files between two pauses */
#define LIVE_PAUSE (5 * CLOCK_MILLISECOND)  /* at least; else as long as the files took */
#define LIVE_FIRST (50 * CLOCK_MILLISECOND) /* before the first file of a directory */

/* Besides 0 and -errno: the directory is left alone in this pass. */
#define LIVE_IN_USE 1

/* When a name last came or went in the leaves of a mirror; 0: it has none. 0 or -errno: it is not known. */
static int live_pass_newest(int branch, const char *mirror, uint64_t *newest)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *leaf;
    struct statx stat;
    *newest = 0;
    int code = disk_scan_init(&scan, branch, mirror, buffer, sizeof buffer);
    while (code >= 0 && (code = disk_scan_next(&scan, &leaf)) > 0) {
        code = sys_statx(scan.fd, leaf->name, AT_SYMLINK_NOFOLLOW, STATX_MTIME, &stat);
        if (code == 0 && clock_stamp(stat.stx_mtime) > *newest)
            *newest = clock_stamp(stat.stx_mtime);
        code = disk_look_failure(code);
    }
    disk_scan_finish(&scan);
    return disk_look_failure(code);
}

static uint64_t *live_pass_done(struct live *live, const char *mirror)
{
    return &live->done[record_hash(mirror, strlen(mirror)) % LIVE_DONE];
}

static uint64_t live_pass_trunk_time(const struct live *live)
{
    struct statx stat;
    return sys_statx(live->trunk, "", AT_EMPTY_PATH, STATX_MTIME, &stat) == 0 ? clock_stamp(stat.stx_mtime) : 0;
}

/* A signal that came just before costs this pause, and no more. */
void live_pause(uint64_t ns)
{
    const struct timespec pause = clock_split(ns);
    clock_sleep(&pause);
}

/* Leaves the file system to others for a while. Does any process make or remove names in the trunk meanwhile? What comes and
 * goes in mirrors is seen at each file. */
static bool live_pass_is_disturbed(const struct live *live, uint64_t pause)
{
    const uint64_t before = live_pass_trunk_time(live);
    live_pause(pause);
    return live->has_turn && live_pass_trunk_time(live) != before;
}

static bool live_pass_batch_is_disturbed(struct live *live)
{
    if (++live->batch < LIVE_BATCH)
        return false;
    const uint64_t took = clock_monotonic() - live->batch_began;
    const bool disturbed = live_pass_is_disturbed(live, took > LIVE_PAUSE ? took : LIVE_PAUSE);
    live->batch = 0;
    live->batch_began = clock_monotonic();
    return disturbed;
}

static void live_pass_show_progress(struct live *live)
{
    if (progress_due(&live->progress))
        progress_line(&live->progress, "moved %zu files of this node, %zu directories are done", live->files,
                      live->directories);
}

/* Is it this file's fault? It stays, and what the others are is not known by that. */
static bool live_pass_is_refusal(int error)
{
    return error == -EEXIST || error == -EXDEV || error == -EPERM || error == -EACCES || error == -ENAMETOOLONG;
}

static int live_pass_refuse(struct live *live, const char *path, int error)
{
    live->refused++;
    if (!live->tells || live->is_again)
        return 0;
    progress_finish(&live->progress);
    if (error == -EEXIST)
        error_report("%s: a program without shunt made another file of that name (rename that, then run this again)", path);
    else if (error == -EXDEV)
        error_report("%s: cannot be renamed to another file system, mount or quota (it stays until the session ends)", path);
    else if (error == -EPERM)
        error_report("%s: not permitted (run 'chattr -i -a' on it or its directory, or this as its owner)", path);
    else
        error_report_path(path, error);
    return 0;
}

/* 0, LIVE_IN_USE or -errno; *moved is counted. */
static int live_pass_file(struct live *live, const char *name, size_t *moved)
{
    char path[PATH_MAX];
    if (stopping())
        return -EINTR;
    if (snprintf(path, sizeof path, "%s/%s", live->path, name) >= PATH_MAX)
        return live_pass_refuse(live, name, -ENAMETOOLONG);
    const int code = promote_quiet(path, &live->order);
    if (live_pass_is_refusal(code))
        return live_pass_refuse(live, path, code);
    *moved += code == PROMOTE_MOVED;
    live->files += code == PROMOTE_MOVED;
    live_pass_show_progress(live);
    if (code == PROMOTE_IN_USE || (code >= 0 && live_pass_batch_is_disturbed(live)))
        return LIVE_IN_USE;
    return code < 0 ? code : 0;
}

/* What a file system tells of a directory while files leave it may lack some: until none left it. */
static int live_pass_leaf(struct live *live, int mirror, const char *leaf)
{
    char buffer[16384] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    const size_t refused = live->refused;
    size_t moved = 1;
    int code = 0;
    for (live->is_again = false; code == 0 && moved > 0; live->is_again = true) {
        moved = 0;
        live->refused = refused;
        int more = disk_scan_init(&scan, mirror, leaf, buffer, sizeof buffer);
        while (code == 0 && more >= 0 && (more = disk_scan_next(&scan, &one)) > 0)
            code = live_pass_file(live, one->name, &moved);
        disk_scan_finish(&scan);
        if (more < 0)
            return disk_look_failure(more);
    }
    return code;
}

static int live_pass_leaves(struct live *live, int branch, const char *mirror)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    int code = 0, more = disk_scan_init(&scan, branch, mirror, buffer, sizeof buffer);
    while (code == 0 && more >= 0 && (more = disk_scan_next(&scan, &one)) > 0)
        code = live_pass_leaf(live, scan.fd, one->name);
    disk_scan_finish(&scan);
    return more < 0 && more != -ENOENT ? more : code;
}

/* Both kinds of lock: OCFS2 with its own cluster stack has flock alone for all nodes, others fcntl's alone. Where a file system
 * makes one of the other (NFS), both are this descriptor's. 0, -EBUSY or -1: there is none. */
static int live_pass_lock(int fd)
{
    const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const long range = SYS3(SYS_fcntl, fd, F_OFD_SETLK, &whole);
    if (range == -EAGAIN || range == -EACCES)
        return -EBUSY;
    const long file = SYS2(SYS_flock, fd, LOCK_EX | LOCK_NB);
    return file == -EAGAIN ? -EBUSY : range == 0 || file == 0 ? 0 : -1;
}

/* A lock on the marker, which the kernel takes away from a process that ends: of several nodes that rename into a directory at
 * once each request costs more. Where there are no such locks, nobody waits. A descriptor, -1 without a lock, or -EBUSY. */
static int live_pass_take_turn(const struct live *live)
{
    const int fd = sys_openat(live->trunk, LAYOUT_MARKER, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    const int error = live_pass_lock(fd);
    if (error == 0)
        return fd;
    sys_close(fd);
    return error;
}

static int live_pass_turn(struct live *live, int branch, const char *mirror)
{
    if (live_pass_is_disturbed(live, LIVE_FIRST))
        return LIVE_IN_USE;
    live->batch = 0;
    live->batch_began = clock_monotonic();
    return live_pass_leaves(live, branch, mirror);
}

static int live_pass_directory(struct live *live, int branch, const char *mirror)
{
    live->trunk = sys_openat(AT_FDCWD, live->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (live->trunk < 0)
        return disk_look_failure(live->trunk) < 0 ? live->trunk : LIVE_IN_USE;
    const int turn = live_pass_take_turn(live);
    live->has_turn = turn >= 0;
    const int code = turn == -EBUSY ? LIVE_IN_USE : live_pass_turn(live, branch, mirror);
    if (turn >= 0)
        sys_close(turn);
    sys_close(live->trunk);
    return code;
}

/* Is anything to be done in it, by its own times? */
static bool live_pass_is_due(struct live *live, const char *mirror, uint64_t newest)
{
    if (newest == 0 || *live_pass_done(live, mirror) == newest)
        return false;
    if (newest <= live->order.quiet_since)
        return true;
    live->in_use++;
    return false;
}

static int live_pass_mirror(struct live *live, int branch, const char *mirror)
{
    const uint64_t now = clock_of(CLOCK_REALTIME);
    live->order.quiet_since = now > live->options->quiet ? now - live->options->quiet : 0;
    uint64_t newest;
    int code = live_pass_newest(branch, mirror, &newest);
    if (code < 0 || !live_pass_is_due(live, mirror, newest))
        return code;
    if (!visible_path_of_mirror(live->root, mirror, live->path)) {
        live->unknown++; /* of an earlier session, and nobody has used it in this one, or where it is by now */
        return 0;
    }
    const size_t before = live->files;
    code = live_pass_directory(live, branch, mirror);
    live->in_use += code == LIVE_IN_USE;
    if (code == 0 && live_pass_newest(branch, mirror, &newest) == 0)
        *live_pass_done(live, mirror) = newest;
    live->directories += code == 0 && live->files > before;
    return code < 0 ? code : 0;
}

static int live_pass_branch(struct live *live, const char *branch)
{
    char path[PATH_MAX + LAYOUT_BRANCH_MAX], buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *mirror;
    snprintf(path, sizeof path, "%s/%s", live->branches, branch);
    int code = 0, more = disk_scan_init(&scan, AT_FDCWD, path, buffer, sizeof buffer);
    while (code == 0 && more >= 0 && (more = disk_scan_next(&scan, &mirror)) > 0) {
        const bool is_mirror = !layout_is_catalogue(mirror->name);
        code = stopping() ? -EINTR : is_mirror ? live_pass_mirror(live, scan.fd, mirror->name) : 0;
    }
    disk_scan_finish(&scan);
    return more < 0 && more != -ENOENT ? more : code;
}

static bool live_pass_is_of_node(const struct live *live, const char *branch)
{
    uint32_t incarnation;
    const size_t length = layout_branch_node(branch, strlen(branch), &incarnation);
    return length > 0 && length == strlen(live->node) && memcmp(branch, live->node, length) == 0;
}

/* They are read again where one came or went since: of many nodes each has one. */
static int live_pass_find_branches(struct live *live)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    struct statx stat;
    int code = sys_statx(AT_FDCWD, live->branches, 0, STATX_MTIME, &stat);
    if (code != 0 || clock_stamp(stat.stx_mtime) == live->branches_time)
        return code;
    code = disk_scan_init(&scan, AT_FDCWD, live->branches, buffer, sizeof buffer);
    if (code != 0)
        return code;
    live->branch_count = 0;
    while ((code = disk_scan_next(&scan, &one)) > 0)
        if (live->branch_count < LIVE_BRANCHES && live_pass_is_of_node(live, one->name))
            strcpy(live->branch[live->branch_count++], one->name);
    disk_scan_finish(&scan);
    live->branches_time = code == 0 ? clock_stamp(stat.stx_mtime) : 0;
    return code;
}

int live_pass(struct live *live)
{
    int code = live_pass_find_branches(live);
    for (unsigned i = 0; i < live->branch_count && code == 0; i++)
        code = live_pass_branch(live, live->branch[i]);
    return code;
}
