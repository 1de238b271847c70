/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "start.h"

#include <errno.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "background.h"
#include "base/clock.h"
#include "base/hook.h"
#include "base/log.h"
#include "base/program_signals.h"
#include "base/sys.h"
#include "complaint.h"
#include "coordinator/coordinator.h"
#include "coordinator/evict.h"
#include "coordinator/new_dirs.h"
#include "coordinator/rename_fence.h"
#include "disk/disk.h"
#include "disk/stall_watch.h"
#include "home/home.h"
#include "join.h"
#include "listen/listen.h"
#include "listen/predecessor.h"
#include "membership/failure_detector.h"
#include "membership/heartbeat.h"
#include "membership/remote_stall.h"
#include "membership/root_watch.h"
#include "name_cache.h"
#include "ops/ops.h"
#include "options.h"
#include "prefetch/grant.h"
#include "prefetch/prefetch.h"
#include "recorder/recorder.h"
#include "reply/answer_queue.h"
#include "rpc/collective.h"
#include "rpc/deferred.h"
#include "rooms.h"
#include "session/job.h"
#include "session/run_dirs.h"
#include "union/placement.h"
#include "user_watch.h"

#define INDEX_SIZE (64ull << 30) /* the most it may grow to; a name of 16 bytes takes 48 to 96 (FORMAT.md) */
#define INDEX_LEAST (16ull << 20)
#define DISK_THREADS 4
#define PULSE_THREADS 2 /* one heartbeats, one looks at others, which may take long where one of them hangs */

static struct shuntd *running; /* for the signal handler */

/* A batch system tells all processes, and the supervisor passes on what it was told: that is one request. */
static void start_on_signal(int signal, siginfo_t *info, void *context)
{
    static volatile int told[2];
    bool passed_on = running->supervisor != 0 && info->si_pid == running->supervisor;
    told[passed_on] = told[passed_on] + 1;
    running->stop = told[0] > told[1] ? told[0] : told[1];
    if (running->listen != NULL)
        listen_ring(running->listen);
}

/* The daemon ends: one more request to end changes nothing. All other threads block these signals, so the handler is not at
 * work anywhere. */
static void start_ignore_signals(void)
{
    const struct sigaction action = {.sa_handler = SIG_IGN};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

static void start_take_signals(struct shuntd *shuntd)
{
    struct sigaction action = {.sa_sigaction = start_on_signal, .sa_flags = SA_SIGINFO};
    running = shuntd;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    action = (struct sigaction){.sa_handler = SIG_IGN};
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL); /* EFBIG, of the index or the log, will do */
    program_signals_ignore();
}

/* The daemon before this one crashed, and the root is not there any more: what is left is to take away its files. */
static int start_end_former(struct shuntd *shuntd)
{
    strcpy(shuntd->run_dir, shuntd->former_run_dir);
    root_watch_tell(shuntd);
    return -ENOENT;
}

/* What the site forbids. */
static int start_check_policy(const char *path, const char *canonical)
{
    char origin[PATH_MAX + 32], off[PATH_MAX + 64];
    const char *message = settings_text(options_settings(), SETTINGS_MESSAGE);
    enum settings_key key;
    if (settings_are_off(options_settings()))
        return complain(-EPERM, "off on this host%s%s (%s)", *message != '\0' ? ": " : "", message,
                        settings_off_by(options_settings(), off));
    if (!settings_allow_root(options_settings(), canonical, &key))
        return complain(-EPERM, "%s: no root is allowed there on this host (see '%s' in %s)", path, settings_name(key),
                        settings_origin(options_settings(), key, origin));
    return 0;
}

static bool start_is_directory(const char *path)
{
    struct statx stat;
    return sys_statx(AT_FDCWD, path, 0, STATX_TYPE, &stat) == 0 && S_ISDIR(stat.stx_mode);
}

static int start_open_root(struct shuntd *shuntd)
{
    const char *path = shuntd->options.root;
    int code = union_root_init(&shuntd->root, path, 0);
    if ((code == -ENOENT || code == -ENOTDIR) && shuntd->former_run_dir != NULL)
        return start_end_former(shuntd);
    if (code == -ENOENT)
        return complain(code, "%s: does not exist (make the directory first)", path);
    if (code == -ENOTDIR && start_is_directory(path))
        return complain(code, "%s/" LAYOUT_OWN ": not a directory (it is not shunt's: move it away)", path);
    if (code == -ENOTDIR)
        return complain(code, "%s: not a directory (give the directory to be shared)", path);
    if (code != 0)
        return complain(code, "%s: cannot be opened: %s (check its path and permissions)", path, strerror(-code));
    return start_check_policy(path, shuntd->root.path);
}

/* The directory of this daemon's own below that one, if there is room for its path. */
static bool start_name_below(const struct shuntd *shuntd, const char *base, char to[SESSION_RUN_MAX])
{
    struct text t;
    text_init(&t, to, SESSION_RUN_MAX);
    session_run_dir(&t, base, geteuid(), shuntd->root.device, shuntd->root.id.ino, shuntd->options.node);
    return text_ok(&t);
}

static int start_name_run_dir(struct shuntd *shuntd)
{
    char catalogue_dir[SESSION_RUN_MAX];
    const char *catalogue_base = shuntd->options.catalogue_base;
    if (!start_name_below(shuntd, shuntd->options.run_base, shuntd->run_dir))
        return complain(-ENAMETOOLONG, "SHUNT_RUN_DIR: the path is too long (name a shorter one)");
    if (catalogue_base != NULL && !start_name_below(shuntd, catalogue_base, catalogue_dir))
        return complain(-ENAMETOOLONG, "SHUNT_CATALOGUE_DIR: the path is too long (name a shorter one)");
    const bool is_same = shuntd->former_run_dir == NULL || (strcmp(shuntd->former_run_dir, shuntd->run_dir) == 0 &&
                                                            predecessor_served_root(shuntd->run_dir, shuntd->root.id));
    return is_same ? 0 : start_end_former(shuntd); /* another directory is at that path now, maybe with its inode number */
}

static int start_refuse_root(const struct shuntd *shuntd, int code)
{
    const char *path = shuntd->root.path;
    switch (code) {
    case -EMEDIUMTYPE:
        return complain(code,
                        "%s: cannot be served, the inode numbers of its file system are not stable (use a directory on another "
                        "file system, which 'shunt doctor --root DIR' checks)",
                        path);
    case -EOPNOTSUPP:
        return complain(code,
                        "%s: cannot be served, its file system has no hard links (use a directory on another file system, "
                        "which 'shunt doctor --root DIR' checks)",
                        path);
    case -ELOOP:
        return complain(code, "%s: lies inside another root (give that root instead)", path);
    case -EBUSY:
        return complain(code, "%s: cannot be a root, all other roots are below it (give the directory to be shared)", path);
    case -EROFS:
        return complain(code, "%s: the file system is read-only (remount it writable, or read with 'shunt ls')", path);
    default:
        return complain(code, "%s: cannot be made a root: %s (check permissions, quota and space there)", path,
                        strerror(-code));
    }
}

static int start_prepare_root(struct shuntd *shuntd)
{
    bool restamped;
    int code = session_prepare_root(shuntd->root.path, &restamped);
    if (code == -ENOENT && shuntd->options.again) /* an export removes what it makes */
        return START_AGAIN;
    if (code != 0)
        return start_refuse_root(shuntd, code);
    if (restamped)
        log_line("%s: a copy of another root, it now has a stamp of its own", shuntd->root.path);
    return 0;
}

static int start_describe_self(struct shuntd *shuntd)
{
    int code = peers_create(&shuntd->peers);
    shuntd->branch_of = calloc(UINT16_MAX + 1, sizeof *shuntd->branch_of);
    if (code != 0 || shuntd->branch_of == NULL)
        return complain(-ENOMEM, "not enough memory (free some and run this again)");
    session_self(&shuntd->me, shuntd->options.node);
    strcpy(shuntd->me.run_dir, shuntd->run_dir);
    strcpy(shuntd->me.job, shuntd->options.job);
    return 0;
}

static int start_claim_branch(struct shuntd *shuntd)
{
    int code = session_claim_branch(shuntd->root.path, shuntd->options.node, shuntd->me.branch);
    if (code == -ENOENT && shuntd->options.again)
        return START_AGAIN;
    if (code != 0)
        return complain(code, "%s: no directory for this host's files can be made: %s (check quota and space of %s/.shunt)",
                        shuntd->root.path, strerror(-code), shuntd->root.path);
    int number = union_root_add(&shuntd->root, shuntd->me.branch);
    if (number < 0)
        return complain(number, "not enough memory (free some and run this again)");
    shuntd->branch = (uint16_t)number;
    snprintf(shuntd->branch_path, sizeof shuntd->branch_path, "%s/" LAYOUT_BRANCHES "/%s", shuntd->root.path,
             shuntd->me.branch);
    return 0;
}

/* Something cannot be made in the run directory. */
static int start_fail_run_dir(const struct shuntd *shuntd, int code)
{
    if (code == -ENOSPC || code == -EDQUOT)
        return complain(code,
                        "%s: the run directory is full (make room there, 'shunt cleanup' removes what ended jobs left, or set "
                        "SHUNT_RUN_DIR to another local directory)",
                        shuntd->run_dir);
    return complain(code, "%s: cannot be made: %s (set SHUNT_RUN_DIR to a local directory)", shuntd->run_dir, strerror(-code));
}

static int start_make_run_dir(struct shuntd *shuntd)
{
    char parent[PATH_MAX];
    struct stat stat;
    strcpy(parent, shuntd->run_dir);
    *strrchr(parent, '/') = '\0';
    if ((mkdir(parent, 0700) != 0 && errno != EEXIST) || (mkdir(shuntd->run_dir, 0700) != 0 && errno != EEXIST))
        return start_fail_run_dir(shuntd, -errno);
    if (lstat(parent, &stat) != 0 || !S_ISDIR(stat.st_mode) || stat.st_uid != geteuid())
        return complain(-EPERM, "%s: not a directory that you own (set SHUNT_RUN_DIR to another directory)", parent);
    if ((stat.st_mode & 077) != 0)
        return complain(-EPERM,
                        "%s: not a directory that you alone may use (run 'chmod 700 %s', or set SHUNT_RUN_DIR to another "
                        "directory)",
                        parent, parent);
    return 0;
}

static int start_await(struct shuntd *shuntd, pid_t (*holder)(const char *), const char *where)
{
    const struct timespec pause = clock_split(5 * CLOCK_MILLISECOND);
    uint64_t began = clock_monotonic();
    bool told = false;
    pid_t pid;
    while ((pid = holder(where)) != 0 && shuntd->stop == 0 && !BROKEN("former-unawaited")) {
        if (!told && clock_monotonic() - began > CLOCK_SECOND) {
            log_line("process %d: waits for the end of a call that began under an earlier daemon (if it is stopped, run 'kill "
                     "-CONT %d')",
                     (int)pid, (int)pid);
            told = true;
        }
        clock_sleep(&pause);
    }
    return shuntd->stop == 0 ? 0 : complain_interrupted();
}

/* A daemon that served here before may have crashed, and processes be at what it let them begin. Until they are done,
 * nothing is looked at, nor is its place in the session taken, since others would look then. */
static int start_await_former(struct shuntd *shuntd)
{
    return start_await(shuntd, predecessor_holder, shuntd->run_dir);
}

/* A daemon that founds a session again, since no member of the one before lives, waits for the processes of its other nodes,
 * too. */
static int start_await_others(struct shuntd *shuntd)
{
    char beginning[SESSION_RUN_MAX];
    struct text t;
    HOOK("session-claimed");
    const struct session_member *home = session_home(&shuntd->session);
    if (home == NULL || home->number != shuntd->me.number)
        return 0;
    text_init(&t, beginning, sizeof beginning);
    session_run_dir(&t, shuntd->options.run_base, geteuid(), shuntd->root.device, shuntd->root.id.ino, "");
    return text_ok(&t) ? start_await(shuntd, predecessor_holder_of_any, beginning) : -ENAMETOOLONG;
}

/* The map takes no memory, but address space, of which half is for the rest. */
static size_t start_index_size(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur / 2 > INDEX_SIZE)
        return INDEX_SIZE;
    uint64_t size = limit.rlim_cur / 2;
    return size > INDEX_LEAST ? size / INDEX_LEAST * INDEX_LEAST : INDEX_LEAST;
}

static int start_open_index(struct shuntd *shuntd)
{
    struct index_stamp stamp = {.session = shuntd->session.id, .root = shuntd->root.id};
    const uint64_t most = settings_limit(options_settings(), SETTINGS_INDEX_LIMIT_MAX);
    shuntd->options.index_limit = evict_limit(shuntd->options.index_limit, shuntd->run_dir);
    shuntd->options.index_limit = shuntd->options.index_limit < most ? shuntd->options.index_limit : most;
    int code = union_root_look(&shuntd->root); /* others may have come and gone since it was opened */
    if (code == 0)
        code = index_create(&shuntd->index, shuntd->run_dir, start_index_size(), &stamp);
    for (size_t i = 0; code == 0 && i < shuntd->root.branch_count; i++)
        code = index_put_branch(shuntd->index, (uint16_t)(i + 1), shuntd->root.branches[i]);
    if (code == 0) /* a root that can take no name is not served */
        code = index_make_room_for(shuntd->index, 1, 0);
    if (code != 0)
        return start_fail_run_dir(shuntd, code);
    return 0;
}

static void start_ring(struct shuntd *shuntd)
{
    listen_ring(shuntd->listen);
}

/* The kernel keeps no names of a file system in user space, unless that one promises that they hold for a time. */
static bool start_is_far(const struct shuntd *shuntd)
{
    struct statfs filesystem;
    const bool is_fuse = statfs(shuntd->root.path, &filesystem) == 0 && filesystem.f_type == FUSE_SUPER_MAGIC;
    return (is_fuse && !BROKEN("far")) || BROKEN("near");
}

/* What is promised there, and what would change that. */
static void start_judge_names(struct shuntd *shuntd)
{
    shuntd->root.keeps_names = name_cache_is_kept(shuntd->root.path);
    if (shuntd->root.keeps_names)
        log_line("%s: names of another time may be kept by NFS, so each call asks the server for its directory first: "
                 "names that nodes use at once may be missed for a moment, attributes of files are as old as NFS keeps them "
                 "(mount it with lookupcache=none to have names strict)",
                 shuntd->root.path);
}

static int start_open_rooms(struct shuntd *shuntd)
{
    int code = answer_queue_create(&shuntd->answers);
    if (code == 0)
        code = prefetch_create(&shuntd->prefetch);
    if (code == 0)
        code = grant_create(&shuntd->grants);
    if (code == 0)
        code = listen_create(&shuntd->listen, shuntd->run_dir, shuntd->session.id, shuntd->root.id, shuntd->supervisor);
    const struct home_uses uses = {.index = shuntd->index,
                                   .listen = shuntd->listen,
                                   .now = &shuntd->now,
                                   .blocked = &shuntd->counts.blocked,
                                   .waited = &shuntd->counts.waited};
    if (code == 0)
        code = home_create(&shuntd->home, &uses);
    if (code == 0)
        listen_set_branch(shuntd->listen, shuntd->branch);
    if (code == 0 && start_is_far(shuntd))
        listen_set_slow_lookup(shuntd->listen);
    start_judge_names(shuntd);
    shuntd->root.may_settle = coordinator_may_settle;
    shuntd->root.settle_context = shuntd;
    if (code == 0)
        code = stall_watch_create(&shuntd->stall_watch, shuntd, heartbeat_note_stall);
    if (code == 0)
        code = disk_create(&shuntd->disk, shuntd, DISK_THREADS, start_ring, shuntd->stall_watch);
    if (code == 0)
        code = disk_create(&shuntd->heartbeat_disk, shuntd, PULSE_THREADS, start_ring, NULL); /* heartbeat_step sees it */
    if (code == 0)
        code = failure_detector_create(shuntd);
    if (code == 0)
        code = remote_stall_create(shuntd);
    if (code == 0)
        code = recorder_create(shuntd);
    if (code != 0)
        return start_fail_run_dir(shuntd, code);
    return 0;
}

/* For readers of the run directory; a daemon for which there is no room serves without it. */
static int start_describe_run_dir(struct shuntd *shuntd)
{
    struct run_dirs_about about = {.since = shuntd->me.since};
    struct session_job job;
    strcpy(about.root, shuntd->root.path);
    strcpy(about.node, shuntd->options.node);
    if (session_job_read(&job, environ)) {
        snprintf(about.scheduler, sizeof about.scheduler, "%s", job.scheduler);
        strcpy(about.job, job.id);
        strcpy(about.step, job.step);
    }
    int code = run_dirs_about_write(shuntd->run_dir, &about);
    if (code != 0)
        log_line("%s/" RUN_DIRS_ABOUT ": cannot be written: %s", shuntd->run_dir, strerror(-code));
    return 0;
}

static void start_choose_leaf_full(struct shuntd *shuntd)
{
    struct statfs filesystem;
    if (shuntd->options.leaf_full == 0 && statfs(shuntd->root.path, &filesystem) == 0)
        shuntd->options.leaf_full = placement_leaf_full((uint64_t)filesystem.f_type);
    if (shuntd->options.leaf_full >
        settings_limit(options_settings(), SETTINGS_LEAF_FULL_MAX)) /* of the command line, or that default */
        shuntd->options.leaf_full = (uint32_t)settings_limit(options_settings(), SETTINGS_LEAF_FULL_MAX);
}

/* What was meant for the programs of a job. A pidfd is taken for every process that uses the channel. */
static void start_raise_limits(void)
{
    static const int limits[] = {RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE};
    struct rlimit limit;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (getrlimit(limits[i], &limit) != 0)
            continue;
        limit.rlim_cur = limit.rlim_max;
        setrlimit(limits[i], &limit);
    }
}

int start(struct shuntd *shuntd)
{
    static int (*const steps[])(struct shuntd *) = {
        start_open_root,        start_name_run_dir, join_check,    start_prepare_root, start_make_run_dir, start_await_former,
        start_describe_self,    start_claim_branch, join_or_found, start_await_others, start_open_index,   start_open_rooms,
        start_describe_run_dir, join_enter};
    shuntd_init(shuntd);
    rooms_connect(shuntd);
    umask(022);
    start_raise_limits();
    start_take_signals(shuntd);
    int code = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == 0; i++)
        code = shuntd->stop == 0 ? steps[i](shuntd) : complain_interrupted();
    start_choose_leaf_full(shuntd);
    return code;
}

static void start_remove_run_dir(const struct shuntd *shuntd, bool with_log)
{
    static const char *const files[] = {"index", "channel", "channel.new", RUN_DIRS_ABOUT, "log"};
    char path[PATH_MAX + 16];
    if (shuntd->root_gone && predecessor_is_served(shuntd->run_dir)) /* a new root has the inode number of that one */
        return;
    recorder_remove_files(shuntd);
    for (size_t i = 0; i < sizeof files / sizeof *files - !with_log; i++) {
        snprintf(path, sizeof path, "%s/%s", shuntd->run_dir, files[i]);
        unlink(path);
    }
    rmdir(shuntd->run_dir);
}

/* The order: no signal handler runs any more (main's thread alone takes the signals); then the threads end, all of which ring
 * the channel's doorbell or serve from the index (the fabric's, the disk's, those of heartbeats, the watch's, the recorder's;
 * the one that waits for the end of clients is joined by listen_destroy); then the channel, what only main's thread uses, the
 * index, and the files of the run directory. */
void start_undo(struct shuntd *shuntd, bool failed)
{
    bool served = shuntd->index != NULL;
    /* After a crash, and told to end before it served: nobody holds anything of the crashed one's channel any more. */
    const bool follows = shuntd->former_run_dir != NULL && shuntd->me.number != 0;
    shuntd->root_gone |= served && root_watch_misses(shuntd);
    start_ignore_signals();
    if (shuntd->fabric_opens)
        pthread_join(shuntd->fabric_thread, NULL);
    peers_destroy(shuntd->peers);
    disk_destroy(shuntd->disk);
    disk_destroy(shuntd->heartbeat_disk);
    stall_watch_destroy(shuntd->stall_watch);
    recorder_destroy(shuntd);
    failure_detector_free(shuntd);
    remote_stall_free(shuntd);
    listen_destroy(shuntd->listen);
    collective_free(shuntd);
    rename_fence_free(shuntd);
    new_dirs_free(shuntd);
    coordinator_free(shuntd);
    list_free(shuntd);
    for (struct evict_unrecorded *one; (one = evict_take_unrecorded(shuntd)) != NULL;)
        free(one);
    rpc_deferred_free(shuntd);
    home_destroy(shuntd->home);
    answer_queue_destroy(shuntd->answers);
    prefetch_destroy(shuntd->prefetch);
    grant_destroy(shuntd->grants);
    index_destroy(shuntd->index);
    if (served || follows || shuntd->root_gone)
        start_remove_run_dir(shuntd, !failed);
    else
        rmdir(shuntd->run_dir);                                        /* if it is empty: nobody else's */
    if (shuntd->branch != 0 && !shuntd->cut_off && !shuntd->root_gone) /* else it is to be fenced */
        rmdir(shuntd->branch_path);                                    /* if nothing was redirected */
    if (shuntd->me.number != 0 && !shuntd->root_gone)
        session_leave(shuntd->root.path, shuntd->session.id, shuntd->me.number);
    user_watch_finish();
    session_finish(&shuntd->session);
    free(shuntd->branch_of);
    union_root_finish(&shuntd->root);
}
