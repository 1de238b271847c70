/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/root_watch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sys.h"
#include "disk/disk.h"
#include "union/identity.h"

#define LOOK_BEATS 5             /* halves: each 5 s, where there are few daemons */
#define AGAIN (CLOCK_SECOND / 2) /* when it was not there, or the daemon is to end */
#define TIMES 2

struct root_watch_job {
    struct disk_job job;
    bool missing;
};

/* An error that may pass says nothing. */
bool root_watch_misses(const struct shuntd *shuntd)
{
    struct statx stat;
    int error = identity_stat(shuntd->root.id, AT_FDCWD, shuntd->root.path, 0, &stat);
    return error == 0 ? !dirid_equal(dirid_of(&stat), shuntd->root.id) : error == -ENOENT || error == -ENOTDIR;
}

static void root_watch_carry_out(struct disk_job *base, const struct shuntd *shuntd)
{
    struct root_watch_job *job = (struct root_watch_job *)base;
    job->missing = root_watch_misses(shuntd);
}

static int root_watch_finish(struct disk_job *base, struct shuntd *shuntd)
{
    struct root_watch_job *job = (struct root_watch_job *)base;
    shuntd->root_missing = job->missing ? shuntd->root_missing + 1 : 0;
    shuntd->root_looks = false;
    shuntd->root_looked = shuntd->now;
    free(job);
    if (shuntd->root_missing < TIMES || shuntd->root_gone)
        return 0;
    root_watch_tell(shuntd);
    shuntd->stop = 2; /* nobody is left to hand anything over to */
    return 0;
}

uint64_t root_watch_due(const struct shuntd *shuntd)
{
    const bool soon = shuntd->root_missing > 0 || shuntd->stop != 0;
    const uint64_t pause = soon ? AGAIN : LOOK_BEATS * session_beat_interval(shuntd->session.count) / 2;
    return shuntd->root_looks ? UINT64_MAX : shuntd->root_looked + pause;
}

int root_watch_step(struct shuntd *shuntd)
{
    if (shuntd->root_looked == 0)
        shuntd->root_looked = shuntd->now;
    if (shuntd->now < root_watch_due(shuntd))
        return 0;
    struct root_watch_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return -ENOMEM;
    job->job = (struct disk_job){.carry_out = root_watch_carry_out, .finish = root_watch_finish};
    shuntd->root_looks = true;
    disk_submit(shuntd->heartbeat_disk, &job->job);
    return 0;
}

void root_watch_tell(struct shuntd *shuntd)
{
    shuntd->root_gone = true;
    log_line("%s: no longer the directory that is served, it was removed or renamed (run 'shunt start' to serve another one)",
             shuntd->options.root);
}
