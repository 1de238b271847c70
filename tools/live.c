/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "command.h"
#include "json.h"
#include "launch.h"
#include "progress.h"
#include "session/session.h"
#include "shim/process.h"
#include "shim/promote.h"
#include "shim/visible_path.h"
#include "stopping.h"
#include "union/disk.h"
#include "union/layout.h"

#define LIVE_BATCH 64                       /* files between two pauses */
#define LIVE_PAUSE (5 * CLOCK_MILLISECOND)  /* at least; else as long as the files took */
#define LIVE_FIRST (50 * CLOCK_MILLISECOND) /* before the first file of a directory */
#define LIVE_REST_MAX (10 * CLOCK_SECOND)   /* between two passes */
#define LIVE_REST_MIN (CLOCK_SECOND / 4)
#define LIVE_BRANCHES 16          /* more are for the end */
#define LIVE_DONE 4096            /* a power of two */
#define LIVE_NICE 10              /* less would let those wait long who want a name that is held */
#define LIVE_IDLE_CLASS (3 << 13) /* of ioprio_set */

/* Besides 0 and -errno: the directory is left alone in this pass. */
#define LIVE_IN_USE 1

struct live {
    const struct live_options *options;
    bool tells; /* of each file that cannot be moved, once */
    struct names_root *root;
    const char *node;
    char branches[PATH_MAX];                       /* the directory of them all */
    uint64_t branches_time;                        /* when one came or went, as they were read */
    char branch[LIVE_BRANCHES][LAYOUT_BRANCH_MAX]; /* the node's: after a crash it has another one */
    unsigned branch_count;
    struct promote_quiet order;
    struct progress progress;
    uint64_t began;
    size_t files, directories;
    size_t in_use, unknown; /* directories that stay as they are */
    size_t refused;         /* files */
    /* Mirrors in which nothing is to be done, by a hash of the name: when a name last came or went in them then. */
    uint64_t done[LIVE_DONE];
    /* The directory that is being emptied. */
    char path[PATH_MAX];
    int trunk;
    bool is_again; /* what is in the leaf was gone through before */
    unsigned batch;
    uint64_t batch_began;
};

static uint64_t live_time(struct statx_timestamp time)
{
    return (uint64_t)time.tv_sec * CLOCK_SECOND + time.tv_nsec;
}

/* When a name last came or went in the leaves of a mirror; 0: it has none. */
static uint64_t live_newest(int branch, const char *mirror)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *leaf;
    struct statx stat;
    uint64_t newest = 0;
    if (disk_scan_init(&scan, branch, mirror, buffer, sizeof buffer) < 0)
        return 0;
    while (disk_scan_next(&scan, &leaf) > 0)
        if (sys_statx(scan.fd, leaf->name, AT_SYMLINK_NOFOLLOW, STATX_MTIME, &stat) == 0 && live_time(stat.stx_mtime) > newest)
            newest = live_time(stat.stx_mtime);
    disk_scan_finish(&scan);
    return newest;
}

static uint64_t *live_done(struct live *live, const char *mirror)
{
    return &live->done[record_hash(mirror, strlen(mirror)) % LIVE_DONE];
}

static uint64_t live_trunk_time(const struct live *live)
{
    struct statx stat;
    return sys_statx(live->trunk, "", AT_EMPTY_PATH, STATX_MTIME, &stat) == 0 ? live_time(stat.stx_mtime) : 0;
}

/* A signal that came just before costs this pause, and no more. */
static void live_rest(uint64_t ns)
{
    const struct timespec pause = clock_split(ns);
    clock_sleep(&pause);
}

/* Leaves the file system to others for a while. Does anybody make or remove names in the trunk meanwhile? What comes and goes
 * in mirrors is seen at each file. */
static bool live_is_disturbed(const struct live *live, uint64_t pause)
{
    const uint64_t before = live_trunk_time(live);
    live_rest(pause);
    return live_trunk_time(live) != before;
}

static bool live_batch_is_disturbed(struct live *live)
{
    if (++live->batch < LIVE_BATCH)
        return false;
    const uint64_t took = clock_monotonic() - live->batch_began;
    const bool disturbed = live_is_disturbed(live, took > LIVE_PAUSE ? took : LIVE_PAUSE);
    live->batch = 0;
    live->batch_began = clock_monotonic();
    return disturbed;
}

static void live_show_progress(struct live *live)
{
    if (progress_due(&live->progress))
        progress_line(&live->progress, "moved %zu files of this node, %zu directories are done", live->files,
                      live->directories);
}

/* Is it this file's fault? It stays, and what the others are is not known by that. */
static bool live_is_refusal(int error)
{
    return error == -EEXIST || error == -EXDEV || error == -EPERM || error == -EACCES || error == -ENAMETOOLONG;
}

static int live_refuse(struct live *live, const char *path, int error)
{
    live->refused++;
    if (!live->tells || live->is_again)
        return 0;
    progress_finish(&live->progress);
    if (error == -EEXIST)
        error_report("%s: a program without shunt made another file of that name (rename that, then run this again)", path);
    else if (error == -EXDEV)
        error_report("%s: cannot be renamed to another file system, mount or project quota (it stays until the session ends)",
                     path);
    else
        error_report_path(path, error);
    return 0;
}

/* 0, LIVE_IN_USE or -errno; *moved is counted. */
static int live_file(struct live *live, const char *name, size_t *moved)
{
    char path[PATH_MAX];
    if (stopping())
        return -EINTR;
    if (snprintf(path, sizeof path, "%s/%s", live->path, name) >= PATH_MAX)
        return live_refuse(live, name, -ENAMETOOLONG);
    const int code = promote_quiet(path, &live->order);
    if (live_is_refusal(code))
        return live_refuse(live, path, code);
    *moved += code == PROMOTE_MOVED;
    live->files += code == PROMOTE_MOVED;
    live_show_progress(live);
    if (code == PROMOTE_IN_USE || (code >= 0 && live_batch_is_disturbed(live)))
        return LIVE_IN_USE;
    return code < 0 ? code : 0;
}

/* What a file system tells of a directory while files leave it may lack some: until none left it. */
static int live_leaf(struct live *live, int mirror, const char *leaf)
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
        if (disk_scan_init(&scan, mirror, leaf, buffer, sizeof buffer) < 0)
            return 0;
        while (code == 0 && disk_scan_next(&scan, &one) > 0)
            code = live_file(live, one->name, &moved);
        disk_scan_finish(&scan);
    }
    return code;
}

static int live_leaves(struct live *live, int branch, const char *mirror)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    int code = disk_scan_init(&scan, branch, mirror, buffer, sizeof buffer);
    if (code < 0)
        return code == -ENOENT ? 0 : code;
    while (code == 0 && disk_scan_next(&scan, &one) > 0)
        code = live_leaf(live, scan.fd, one->name);
    disk_scan_finish(&scan);
    return code;
}

/* A lock on the marker, which the kernel takes away from who ends: of several nodes that rename into a directory at once each
 * request costs more. Where there are no such locks, nobody waits. A descriptor, -1 without a lock, or -EBUSY. */
static int live_take_turn(const struct live *live)
{
    const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int fd = sys_openat(live->trunk, LAYOUT_MARKER, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    const long code = SYS3(SYS_fcntl, fd, F_OFD_SETLK, &whole);
    if (code != -EAGAIN && code != -EACCES)
        return fd;
    sys_close(fd);
    return -EBUSY;
}

static int live_turn(struct live *live, int branch, const char *mirror)
{
    if (live_is_disturbed(live, LIVE_FIRST))
        return LIVE_IN_USE;
    live->batch = 0;
    live->batch_began = clock_monotonic();
    return live_leaves(live, branch, mirror);
}

static int live_directory(struct live *live, int branch, const char *mirror)
{
    live->trunk = sys_openat(AT_FDCWD, live->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (live->trunk < 0)
        return LIVE_IN_USE;
    const int turn = live_take_turn(live);
    const int code = turn == -EBUSY ? LIVE_IN_USE : live_turn(live, branch, mirror);
    if (turn >= 0)
        sys_close(turn);
    sys_close(live->trunk);
    return code;
}

/* Is anything to be done in it, by its own times? */
static bool live_is_due(struct live *live, const char *mirror, uint64_t newest)
{
    if (newest == 0 || *live_done(live, mirror) == newest)
        return false;
    if (newest <= live->order.quiet_since)
        return true;
    live->in_use++;
    return false;
}

static int live_mirror(struct live *live, int branch, const char *mirror)
{
    const uint64_t now = clock_of(CLOCK_REALTIME);
    live->order.quiet_since = now > live->options->quiet ? now - live->options->quiet : 0;
    if (!live_is_due(live, mirror, live_newest(branch, mirror)))
        return 0;
    if (!visible_path_of_mirror(live->root, mirror,
                                live->path)) { /* of an earlier session, and nobody has used it in this one */
        live->unknown++;
        return 0;
    }
    const size_t before = live->files;
    const int code = live_directory(live, branch, mirror);
    live->in_use += code == LIVE_IN_USE;
    if (code == 0)
        *live_done(live, mirror) = live_newest(branch, mirror);
    live->directories += code == 0 && live->files > before;
    return code < 0 ? code : 0;
}

static int live_branch(struct live *live, const char *branch)
{
    char path[PATH_MAX + LAYOUT_BRANCH_MAX], buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *mirror;
    snprintf(path, sizeof path, "%s/%s", live->branches, branch);
    int code = disk_scan_init(&scan, AT_FDCWD, path, buffer, sizeof buffer);
    if (code < 0)
        return code == -ENOENT ? 0 : code;
    while (code == 0 && disk_scan_next(&scan, &mirror) > 0) {
        const bool is_mirror = !layout_is_catalogue(mirror->name);
        code = stopping() ? -EINTR : is_mirror ? live_mirror(live, scan.fd, mirror->name) : 0;
    }
    disk_scan_finish(&scan);
    return code;
}

static bool live_is_of_node(const struct live *live, const char *branch)
{
    uint32_t incarnation;
    const size_t length = layout_branch_node(branch, strlen(branch), &incarnation);
    return length > 0 && length == strlen(live->node) && memcmp(branch, live->node, length) == 0;
}

/* They are read again where one came or went since: of many nodes each has one. */
static int live_find_branches(struct live *live)
{
    char buffer[4096] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *one;
    struct statx stat;
    int code = sys_statx(AT_FDCWD, live->branches, 0, STATX_MTIME, &stat);
    if (code != 0 || live_time(stat.stx_mtime) == live->branches_time)
        return code;
    code = disk_scan_init(&scan, AT_FDCWD, live->branches, buffer, sizeof buffer);
    if (code != 0)
        return code;
    live->branches_time = live_time(stat.stx_mtime);
    live->branch_count = 0;
    while (disk_scan_next(&scan, &one) > 0)
        if (live->branch_count < LIVE_BRANCHES && live_is_of_node(live, one->name))
            strcpy(live->branch[live->branch_count++], one->name);
    disk_scan_finish(&scan);
    return 0;
}

/* 0; -EINTR: it was told to stop; another -errno. */
static int live_pass(struct live *live)
{
    int code = live_find_branches(live);
    for (unsigned i = 0; i < live->branch_count && code == 0; i++)
        code = live_branch(live, live->branch[i]);
    return code;
}

static int live_set(const char *name, const char *value)
{
    return value != NULL && setenv(name, value, 1) == 0 ? 0 : -1;
}

/* From now on this process is a client of the daemons of these roots. */
static int live_become_client(const struct roots *roots, const char *node)
{
    char *joined = roots_join(roots);
    int error = live_set("SHUNT_ROOT", joined);
    free(joined);
    if (error == 0 && live_set("SHUNT_NODE", node) == 0 && launch_set_root_ids(roots) == 0)
        process_start(environ);
    return process_has_roots() ? 0 : -1;
}

static void live_be_modest(void)
{
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + LIVE_NICE);
    SYS3(SYS_ioprio_set, 1, 0, LIVE_IDLE_CLASS);
}

static struct names_root *live_root(const char *path)
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        if (strcmp(shim_state.roots[i].path, path) == 0)
            return &shim_state.roots[i];
    return NULL;
}

/* 0, or -ENOENT: no daemon of that node serves the root. */
static int live_init(struct live *live, const char *root, const char *node, const struct live_options *options)
{
    struct session session;
    *live = (struct live){.options = options, .root = live_root(root), .node = node, .began = clock_monotonic()};
    const bool is_member = session_read(root, &session) == 0 && session_find_node(&session, node) != NULL;
    const int length = snprintf(live->branches, sizeof live->branches, "%s/" LAYOUT_BRANCHES, root);
    session_finish(&session);
    return live->root != NULL && is_member && length < PATH_MAX ? 0 : -ENOENT;
}

static void live_tell_json(const struct live *live, const char *root, bool complete)
{
    struct json json = {0};
    json_open(&json, NULL, '{');
    json_text(&json, "root", root);
    json_unsigned(&json, "files", live->files);
    json_unsigned(&json, "directories", live->directories);
    json_unsigned(&json, "in_use", live->in_use);
    json_unsigned(&json, "unknown", live->unknown);
    json_unsigned(&json, "refused", live->refused);
    json_real(&json, "seconds", (double)(clock_monotonic() - live->began) / CLOCK_SECOND);
    json_bool(&json, "complete", complete);
    json_close(&json, '}');
}

static void live_tell(struct live *live, const char *root, bool complete)
{
    progress_finish(&live->progress);
    if (live->options->json) {
        live_tell_json(live, root, complete);
        return;
    }
    printf("moved %zu file%s of this node in %zu director%s", live->files, live->files == 1 ? "" : "s", live->directories,
           live->directories == 1 ? "y" : "ies");
    if (live->in_use > 0)
        printf(", %zu in use", live->in_use);
    if (live->unknown > 0)
        printf(", %zu not used in this session", live->unknown);
    if (live->refused > 0)
        printf(", %zu file%s not moved", live->refused, live->refused == 1 ? "" : "s");
    printf("\n");
}

static int live_export_caught(struct live *live, const char *root)
{
    progress_init(&live->progress, live->options->progress);
    const int code = live_pass(live);
    live_tell(live, root, code == 0 && live->in_use + live->unknown + live->refused == 0);
    if (code < 0 && code != -EINTR)
        error_report_path(root, code);
    if (code == -EINTR)
        error_report("%s: interrupted, nothing is lost (run this again to go on)", root);
    return code == -EINTR ? 128 + stopping() : code < 0 || live->refused > 0 ? STATUS_FAILED : STATUS_OK;
}

int live_export(const char *root, const char *node, const struct live_options *options)
{
    static struct live live;
    struct roots roots = {.count = 1, .paths = {(char *)root}};
    if (live_become_client(&roots, node) < 0 || live_init(&live, root, node, options) < 0) {
        error_report("%s: no daemon of node '%s' serves it here (run 'shunt export %s')", root, node, root);
        return STATUS_FAILED;
    }
    live.tells = true;
    live_be_modest();
    stopping_catch();
    const int status = live_export_caught(&live, root);
    stopping_release();
    return status;
}

static uint64_t live_rest_between(uint64_t quiet)
{
    const uint64_t rest = quiet / 4;
    return rest < LIVE_REST_MIN ? LIVE_REST_MIN : rest > LIVE_REST_MAX ? LIVE_REST_MAX : rest;
}

/* Ended by a signal, which waits while a name is held. A root that cannot be served any more, its user hears of by other calls.
 */
static void live_go_on(const struct roots *roots, const char *node, const struct live_options *options)
{
    struct live *all = calloc(roots->count, sizeof *all);
    size_t count = 0;
    for (size_t i = 0; all != NULL && i < roots->count; i++)
        count += live_init(&all[count], roots->paths[i], node, options) == 0;
    for (int code = 0; count > 0 && code == 0;) {
        live_rest(live_rest_between(options->quiet));
        for (size_t i = 0; i < count && code == 0; i++)
            code = live_pass(&all[i]);
    }
    free(all);
}

/* In the child: no descriptor of the parent's stays open, on whose end somebody may wait, and no signal of the terminal ends it
 * before the command. */
static void live_leave_parent(pid_t parent)
{
    static const int defaults[] = {SIGTERM, SIGCHLD, SIGPIPE}, ignored[] = {SIGINT, SIGQUIT, SIGHUP};
    sigset_t none;
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        signal(defaults[i], SIG_DFL);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(1);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    SYS3(SYS_close_range, 3, ~0U, 0);
}

void live_begin(struct live_child *child, const struct roots *roots, const char *node, uint64_t quiet)
{
    const struct live_options options = {.quiet = quiet};
    const pid_t parent = getpid();
    fflush(NULL);
    *child = (struct live_child){.pid = fork(), .fd = -1};
    if (child->pid == 0) {
        live_leave_parent(parent);
        live_be_modest();
        if (live_become_client(roots, node) == 0)
            live_go_on(roots, node, &options);
        _exit(0);
    }
    if (child->pid > 0)
        child->fd = (int)SYS2(SYS_pidfd_open, child->pid, 0);
    else
        child->pid = 0;
}

void live_end(struct live_child *child)
{
    struct pollfd ends = {.fd = child->fd, .events = POLLIN};
    if (child->pid == 0)
        return;
    if (child->fd >= 0) {
        SYS4(SYS_pidfd_send_signal, child->fd, SIGTERM, NULL, 0);
        while (poll(&ends, 1, -1) < 0 && errno == EINTR)
            continue;
        close(child->fd);
    } else {
        kill(child->pid, SIGTERM);
    }
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    child->pid = 0;
}
