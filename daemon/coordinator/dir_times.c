/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* SETTLE, and how the times of directories are told and written. */

#include "coordinator/dir_times.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sys.h"
#include "disk/disk.h"
#include "rpc/collective.h"
#include "prefetch/grant.h"
#include "rpc/peer_rpc.h"
#include "membership/route.h"

/* Telling. */

void times_put(struct message *message, const struct home_dir *dir)
{
    const struct home_times *times = &dir->times;
    message->flags = times->written;
    message->dir[1] = (struct dirid){.ino = times->round, .birth = times->changed};
    message->child.ino = times->settled;
}

/* What the trunk's new change time stands for is kept from other nodes: they may have shown it by now, and
 * would go back. */
static struct home_times taken(const struct message *message)
{
    return (struct home_times){.round = message->dir[1].ino,
                               .changed = message->dir[1].birth,
                               .written = message->flags != 0,
                               .settled = message->child.ino,
                               .stood = message->child.ino};
}

int times_tell(struct shuntd *shuntd, const struct home_dir *dir, uint16_t member)
{
    static const struct home_times nothing;
    struct message word = {.type = MESSAGE_TIMES, .dir[0] = dir->id};
    times_put(&word, dir);
    return home_times_equal(&dir->times, &nothing) ? 0 : relay_message(shuntd, member, RELAY_NEWS, 0, &word);
}

static int tell_users(struct shuntd *shuntd, const struct home_dir *dir)
{
    const struct home_ruler *ruler = dir->ruler;
    int code = 0;
    for (uint32_t i = 0; ruler != NULL && i < ruler->node_count && code == 0; i++)
        if (ruler->nodes[i] != shuntd->me.number && ruler->nodes[i] != dir->teller)
            code = times_tell(shuntd, dir, ruler->nodes[i]);
    return code;
}

static int tell(struct shuntd *shuntd, struct home_dir *dir)
{
    uint16_t ruler = route_of_dir(shuntd, dir->id);
    dir->known = dir->times.changed;
    return ruler == shuntd->me.number ? tell_users(shuntd, dir) : times_tell(shuntd, dir, ruler);
}

/* What comes from another than the ruler is to go to the ruler, or from there to all who use it. */
int times_take(struct shuntd *shuntd, uint16_t member, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    const struct home_times word = taken(message);
    struct home_times before;
    if (dir == NULL)
        return 0;
    before = dir->times;
    int code = home_dir_add_times(shuntd, dir, &word, member);
    if (!home_times_equal(&before, &dir->times) && member != route_of_dir(shuntd, dir->id))
        home_dir_tell(shuntd->home, dir);
    return code;
}

int times_step(struct shuntd *shuntd)
{
    const uint64_t now = shuntd->now;
    struct home_dir *dir;
    int code = 0;
    while (code == 0 && (dir = home_dir_next_untold(shuntd->home, now - TIMES_PAUSE)) != NULL)
        code = tell(shuntd, dir);
    while (code == 0 && (dir = home_dir_next_quiet(shuntd->home, now - TIMES_QUIET)) != NULL)
        code = times_write(shuntd, dir);
    return code;
}

uint64_t times_due(struct shuntd *shuntd)
{
    return home_times_due(shuntd->home, TIMES_PAUSE, TIMES_QUIET);
}

/* Every daemon begins the round; what is being written, is written before. */
int cast_settle(struct shuntd *shuntd, struct cast *cast, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    const struct home_times anew = {.round = message->child.ino};
    if (dir == NULL)
        return 0;
    int code = offer_see_all(shuntd);
    if (code != 0)
        return code;
    if (dir->writing) {
        cast_wait(cast, dir);
        return CAST_LATER;
    }
    return home_dir_add_times(shuntd, dir, &anew, 0);
}

/* Writing. */

struct times_job {
    struct disk_job job;
    struct dirid id;
    struct home_times times;
    int result;
    char path[PATH_MAX];
};

static uint64_t time_of(struct statx_timestamp time)
{
    return (uint64_t)time.tv_sec * CLOCK_SECOND + time.tv_nsec;
}

static int look(int trunk, struct statx *stat)
{
    return sys_statx(trunk, "", AT_EMPTY_PATH, STATX_MTIME | STATX_CTIME, stat);
}

static int write_time(int trunk, uint64_t modified)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, clock_split(modified)};
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", trunk); /* a descriptor of O_PATH takes no times itself */
    return sys_utimensat(AT_FDCWD, self, times, 0);
}

/* Gives the trunk directory the time of the last change, unless its own is later. That changes its change
 * time, which is not to be seen; attributes may have been changed later. */
static int write_times(int trunk, struct home_times *times)
{
    struct statx stat;
    int code = look(trunk, &stat);
    if (code != 0)
        return code;
    uint64_t ctime = time_of(stat.stx_ctime), stood = ctime == times->settled ? times->stood : ctime;
    if (time_of(stat.stx_mtime) < times->changed) {
        stood = stood > times->changed ? stood : times->changed;
        code = write_time(trunk, times->changed);
        if (code == 0)
            code = look(trunk, &stat);
    }
    if (code != 0)
        return code;
    times->stood = stood;
    times->settled = time_of(stat.stx_ctime);
    return 0;
}

static void carry_out(struct disk_job *base, const struct shuntd *shuntd)
{
    struct times_job *job = (struct times_job *)base;
    int trunk = disk_open_trunk(shuntd, job->path, job->id);
    job->result = trunk;
    if (trunk < 0)
        return;
    job->result = write_times(trunk, &job->times);
    job->times.written = job->result == 0;
    sys_close(trunk);
}

/* Until CephFS has a change of a directory in its journal, some seconds later or when somebody wants it, it lets no client
 * know the directory: each create asks for it again, and costs two requests. To no avail is no error. */
static void flush(struct disk_job *base, const struct shuntd *shuntd)
{
    struct times_job *job = (struct times_job *)base;
    int trunk = disk_open_trunk(shuntd, job->path, job->id);
    int directory = trunk >= 0 ? sys_openat(trunk, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) : trunk;
    if (directory >= 0) {
        SYS1(SYS_fsync, directory);
        sys_close(directory);
    }
    if (trunk >= 0)
        sys_close(trunk);
}

/* One at a time, and one more for all that was written meanwhile: the journal is that of all directories. */
static void flush_next(struct shuntd *shuntd)
{
    if (shuntd->flushing != NULL || shuntd->to_flush == NULL)
        return;
    shuntd->flushing = shuntd->to_flush;
    shuntd->to_flush = NULL;
    disk_submit(shuntd->disk, &shuntd->flushing->job);
}

static int flushed(struct disk_job *base, struct shuntd *shuntd)
{
    (void)base;
    free(shuntd->flushing);
    shuntd->flushing = NULL;
    flush_next(shuntd);
    return 0;
}

/* Takes the job. */
static void have_flushed(struct shuntd *shuntd, struct times_job *job)
{
    job->job = (struct disk_job){.carry_out = flush, .finish = flushed};
    free(shuntd->to_flush);
    shuntd->to_flush = job;
    flush_next(shuntd);
}

/* One that could not be written is not tried again, and is still shown to this session's processes. */
static int finish(struct disk_job *base, struct shuntd *shuntd)
{
    struct times_job *job = (struct times_job *)base;
    struct home_dir *dir = home_dir_find(shuntd->home, job->id);
    int code = 0;
    if (job->result != 0)
        log_line("the times of %s could not be written: %s", dir->path, strerror(-job->result));
    if (job->result != 0 && dir->times.changed == job->times.changed)
        list_remove(&dir->unwritten);
    if (job->result == 0) {
        code = home_dir_add_times(shuntd, dir, &job->times, 0);
        home_dir_tell(shuntd->home, dir);
    }
    if (code == 0)
        code = home_dir_wrote(shuntd->home, dir);
    home_dir_release(shuntd->home, dir);
    if (job->result == 0 && listen_is_far(shuntd->listen))
        have_flushed(shuntd, job);
    else
        free(job);
    return code;
}

static struct times_job *times_job(const struct home_dir *dir)
{
    struct times_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return NULL;
    job->job = (struct disk_job){.carry_out = carry_out, .finish = finish};
    job->id = dir->id;
    job->times = dir->times;
    strcpy(job->path, dir->path);
    return job;
}

int times_write(struct shuntd *shuntd, struct home_dir *dir)
{
    struct times_job *job = times_job(dir);
    if (job == NULL)
        return -ENOMEM;
    dir->writing = true;
    disk_submit(shuntd->disk, &job->job);
    return 0;
}

void times_write_all(struct shuntd *shuntd)
{
    for (struct home_dir *dir; (dir = home_dir_next_quiet(shuntd->home, UINT64_MAX)) != NULL;) {
        struct times_job *job = times_job(dir);
        list_remove(&dir->unwritten);
        if (job != NULL)
            carry_out(&job->job, shuntd);
        free(job);
    }
}
