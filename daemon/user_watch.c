/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "user_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "listen/predecessor.h"
#include "request/users.h"

#define LOOK (2 * CLOCK_SECOND)
#define TIMES 2 /* in a row: the processes of one that was killed have a moment to end */

static struct {
    char path[SESSION_RUN_MAX + 16];
    uint64_t looked;
    unsigned missing;
    int fd; /* 1 + the file, locked: this daemon ends */
} watch;

/* Nobody can become a user from then on. */
static bool user_watch_takes_lock(int fd, const char *run_dir)
{
    watch.missing = users_count(fd) == 0 ? watch.missing + 1 : 0;
    if (watch.missing < TIMES || predecessor_is_used(run_dir) || users_lock(fd) != 0)
        return false;
    if (users_count(fd) == 0)
        return true;
    users_unlock(fd);
    return false;
}

/* Its file is not empty once a daemon serves that was started for them. */
static int user_watch_open(const struct shuntd *shuntd)
{
    struct text t;
    struct stat stat;
    text_init(&t, watch.path, sizeof watch.path);
    users_path(&t, shuntd->run_dir);
    int fd = text_ok(&t) ? open(watch.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd >= 0 && (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode) || stat.st_size == 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void user_watch_end(struct shuntd *shuntd)
{
    log_line("%s: all processes that used it were killed, so this daemon ends", shuntd->root.path);
    shuntd->stop = 1;
    if (shuntd->supervisor != 0 && getppid() == shuntd->supervisor)
        kill(shuntd->supervisor, SHUNTD_NO_MORE);
}

int user_watch_step(struct shuntd *shuntd)
{
    if (watch.looked == 0)
        watch.looked = shuntd->now;
    if (shuntd->stop != 0 || shuntd->now < watch.looked + LOOK)
        return 0;
    watch.looked = shuntd->now;
    int fd = user_watch_open(shuntd);
    if (fd < 0)
        return 0;
    if (user_watch_takes_lock(fd, shuntd->run_dir)) {
        watch.fd = fd + 1;
        user_watch_end(shuntd);
    } else {
        close(fd);
    }
    return 0;
}

void user_watch_finish(void)
{
    if (watch.fd == 0)
        return;
    unlink(watch.path);
    close(watch.fd - 1);
    watch.fd = 0;
}
