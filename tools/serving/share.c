/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serving/share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/sys.h"
#include "cli/command.h"
#include "cli/stopping.h"
#include "config/config.h"
#include "request/request.h"
#include "request/users.h"
#include "union/disk.h"

#define LOOKS (CLOCK_SECOND / 50)
#define STOPS 3 /* of daemons that are killed meanwhile */
#define TELLS (3 * CLOCK_SECOND)

/* False: it is not known where the daemon's files would be, which shuntd complains of. */
static bool share_init(struct share *share, const char *root, const char *node)
{
    struct config config;
    struct statx stat;
    struct text t;
    *share = (struct share){.root = root, .users = -1, .pidfd = -1};
    config_read(&config, environ);
    if (sys_statx(AT_FDCWD, root, 0, STATX_INO, &stat) != 0)
        return false;
    text_init(&t, share->run_dir, sizeof share->run_dir);
    session_run_dir(&t, config.run_base, geteuid(), disk_device(&stat), stat.stx_ino, node);
    return text_ok(&t);
}

/* The file of the users, in a directory that is this user's alone. -1: there can be none. */
static int share_open(const char *path, int flags)
{
    char above[PATH_MAX];
    struct stat stat;
    snprintf(above, sizeof above, "%s", path);
    *strrchr(above, '/') = '\0';
    if ((flags & O_CREAT) != 0)
        mkdir(above, 0700);
    if (lstat(above, &stat) != 0 || !S_ISDIR(stat.st_mode) || stat.st_uid != geteuid() || (stat.st_mode & 077) != 0)
        return -1;
    return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

/* The last user has removed it. */
static bool share_is_there(int fd, const char *path)
{
    struct stat mine, now;
    return fstat(fd, &mine) == 0 && stat(path, &now) == 0 && mine.st_ino == now.st_ino && mine.st_dev == now.st_dev;
}

/* Another one starts or stops the daemon; `patient`: a signal changes nothing. 0, or -EINTR. */
static int share_wait_for_lock(const struct share *share, bool patient)
{
    const struct timespec pause = clock_split(LOOKS);
    const uint64_t began = clock_monotonic();
    bool told = false;
    while (users_lock(share->users) == -EAGAIN) {
        if (!patient && stopping())
            return -EINTR;
        if (!told && clock_monotonic() - began >= TELLS) {
            error_report("%s: waits for another job of yours that starts or stops the daemon of this node", share->root);
            told = true;
        }
        clock_sleep(&pause);
    }
    return 0;
}

/* From now on nobody else starts or stops the daemon. 0, also if there can be no file; -EINTR. */
static int share_lock(struct share *share, int flags, bool patient)
{
    char path[SESSION_RUN_MAX + 16];
    struct text t;
    int code = 0;
    text_init(&t, path, sizeof path);
    users_path(&t, share->run_dir);
    while (code == 0) {
        if (share->users < 0 && (!text_ok(&t) || (share->users = share_open(path, flags)) < 0))
            return 0;
        code = share_wait_for_lock(share, patient);
        if (code == 0 && (share->mine != 0 || share_is_there(share->users, path)))
            break;
        close(share->users);
        share->users = -1;
    }
    return code;
}

static void share_unlock(struct share *share)
{
    if (share->users >= 0)
        users_unlock(share->users);
}

static void share_close(struct share *share)
{
    if (share->users >= 0)
        close(share->users);
    if (share->pidfd >= 0)
        close(share->pidfd);
    share->users = share->pidfd = -1;
    share->mine = 0;
}

/* While it is locked. */
static void share_remove_file(const struct share *share)
{
    char path[SESSION_RUN_MAX + 16];
    struct text t;
    text_init(&t, path, sizeof path);
    users_path(&t, share->run_dir);
    if (share->users >= 0 && text_ok(&t))
        unlink(path);
}

/* Its end is seen from now on. True: it was killed before that, and so there is nothing to be seen. */
static bool share_watch(struct share *share)
{
    const pid_t pid = request_serving_process(share->run_dir);
    HOOK("share-found");
    if (share->pidfd >= 0)
        close(share->pidfd);
    share->pidfd = pid > 0 ? (int)SYS2(SYS_pidfd_open, pid, 0) : -1;
    if (share->pidfd >= 0)
        return false;
    share->pidfd = -1;
    return request_was_killed(share->run_dir);
}

/* What had to be done before a daemon of that root was started first is done. */
static int share_start_again(const struct share *share, const struct daemon_options *options)
{
    struct daemon_options again = *options;
    again.settled = again.orphans_told = true;
    return daemon_start_root(share->root, &again);
}

/* Was the daemon that is there started by one that counts users? One that was not, as of `shunt start`, is not shared, and
 * shuntd says so. Without a file nobody is counted. */
static bool share_is_counted(const struct share *share)
{
    struct stat stat;
    return share->users >= 0 && fstat(share->users, &stat) == 0 && stat.st_size > 0;
}

static int share_start(struct share *share, const struct daemon_options *options)
{
    if (share_is_counted(share) && request_serving_process(share->run_dir) != 0)
        return 0;
    if (daemon_start_root(share->root, options) != 0)
        return -1;
    return share->users < 0 || ftruncate(share->users, 1) == 0 ? 0 : -1;
}

/* The job that started it may end at any moment, and the daemon with it. */
static int share_start_watched(struct share *share, const struct daemon_options *options)
{
    do
        if (share_start(share, options) != 0)
            return -1;
    while (share_watch(share));
    return 0;
}

/* Nobody has used it, or does so any more. */
static void share_tidy(struct share *share)
{
    if (share->users >= 0 && users_count(share->users) == 0)
        share_remove_file(share);
}

static int share_enter(struct share *share, const char *root, const struct daemon_options *options)
{
    const bool is_known = share_init(share, root, options->node);
    if (is_known && share_lock(share, O_CREAT, false) != 0)
        return -1;
    int code = share_start_watched(share, options);
    if (code == 0 && share->users >= 0)
        code = users_add(share->users, &share->mine);
    if (code != 0)
        share_tidy(share);
    share_unlock(share);
    if (code != 0)
        share_close(share);
    return code == 0 ? 0 : -1;
}

/* A daemon that was killed, also while it ended, leaves what only another one can settle. */
static int share_stop(const struct share *share, const struct daemon_options *options)
{
    int code = 0;
    for (unsigned i = 0; code == 0 && (i == 0 || request_was_killed(share->run_dir)) && i < STOPS; i++) {
        if (request_was_killed(share->run_dir))
            code = share_start_again(share, options);
        if (code == 0)
            code = daemon_stop(share->root, options->node) < 0 ? -1 : 0;
    }
    return code;
}

/* True: others go on with it. */
static bool share_leave(struct share *share, const struct daemon_options *options, int *code)
{
    share_lock(share, O_CREAT, true);
    if (share->users >= 0)
        users_remove(share->users, share->mine);
    const bool is_left = share->users >= 0 && users_count(share->users) > 0;
    if (!is_left && share_stop(share, options) != 0)
        *code = -1;
    share_tidy(share);
    share_unlock(share);
    share_close(share);
    return is_left;
}

int shares_enter(struct shares *shares, const struct roots *roots, const struct daemon_options *options)
{
    *shares = (struct shares){.options = options};
    while (shares->count < roots->count && !stopping() &&
           share_enter(&shares->at[shares->count], roots->paths[shares->count], options) == 0)
        shares->count++;
    if (shares->count == roots->count && !stopping())
        return 0;
    shares_leave(shares);
    return -1;
}

int shares_leave(struct shares *shares)
{
    int answer = 0;
    shares->left = 0;
    for (size_t i = 0; i < shares->count; i++)
        shares->left += share_leave(&shares->at[i], shares->options, &answer);
    shares->count = 0;
    return answer;
}

size_t shares_watch(const struct shares *shares, struct pollfd *to)
{
    for (size_t i = 0; i < shares->count; i++)
        to[i] = (struct pollfd){.fd = shares->at[i].pidfd, .events = POLLIN};
    return shares->count;
}

/* Several users see it; the first one starts the daemon. A daemon that lost its supervisor goes on, and is watched itself. */
static int share_renew(struct share *share, const struct daemon_options *options)
{
    int code = 0;
    share_lock(share, O_CREAT, true);
    do
        if (request_serving_process(share->run_dir) == 0)
            code = request_was_killed(share->run_dir) ? share_start_again(share, options) : -1;
    while (share_watch(share) && code == 0);
    share_unlock(share);
    return code;
}

int shares_renew(struct shares *shares, const struct pollfd *watched)
{
    int answer = 0;
    for (size_t i = 0; i < shares->count; i++)
        if (watched[i].fd >= 0 && watched[i].revents != 0 && share_renew(&shares->at[i], shares->options) != 0)
            answer = -1;
    return answer;
}

bool share_is_started(const char *root, const char *node)
{
    struct share share;
    char path[SESSION_RUN_MAX + 16];
    struct text t;
    text_init(&t, path, sizeof path);
    if (!share_init(&share, root, node))
        return false;
    users_path(&t, share.run_dir);
    share.users = text_ok(&t) ? share_open(path, 0) : -1;
    const bool is_started = request_serving_process(share.run_dir) != 0 && !share_is_counted(&share);
    share_close(&share);
    return is_started;
}

void share_forget(const char *root, const char *node)
{
    struct share share;
    if (!share_init(&share, root, node) || share_lock(&share, 0, false) != 0)
        return;
    share_tidy(&share);
    share_unlock(&share);
    share_close(&share);
}
