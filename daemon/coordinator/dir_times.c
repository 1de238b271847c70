/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* SETTLE, and how the times of directories are told and written. */

#include "coordinator/dir_times.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/log.h"
#include "base/sys.h"
#include "coordinator/coordinator.h"
#include "disk/disk.h"
#include "home/home.h"
#include "home/route.h"
#include "rpc/collective.h"
#include "rpc/deferred.h"
#include "rpc/peer_rpc.h"

/* Telling. */

struct message_times dir_times_of(const struct home_dir *dir)
{
    const struct home_times *times = &dir->times;
    return (struct message_times){
        .round = times->round, .changed = times->changed, .settled = times->settled, .written = times->written};
}

/* What the trunk's new change time stands for is kept from other nodes: they may have shown it by now, and
 * would go back. */
static struct home_times dir_times_taken(const struct message_times *told)
{
    return (struct home_times){.round = told->round,
                               .changed = told->changed,
                               .written = told->written,
                               .settled = told->settled,
                               .stood = told->settled};
}

static int dir_times_send(struct shuntd *shuntd, uint16_t member, struct dirid id, const struct message_times *times)
{
    const struct message word = {.type = MESSAGE_TIMES, .dir = id, .times = *times};
    return rpc_message(shuntd, member, RPC_NOTIFY, 0, &word);
}

int dir_times_tell(struct shuntd *shuntd, const struct home_dir *dir, uint16_t member)
{
    static const struct home_times nothing;
    const struct message_times times = dir_times_of(dir);
    return home_times_equal(&dir->times, &nothing) ? 0 : dir_times_send(shuntd, member, dir->id, &times);
}

static int dir_times_tell_users(struct shuntd *shuntd, const struct home_dir *dir)
{
    const struct home_coordinator *coordinator = dir->coordinator;
    int code = 0;
    for (uint32_t i = 0; coordinator != NULL && i < coordinator->node_count && code == 0; i++)
        if (coordinator->nodes[i] != shuntd->me.number && coordinator->nodes[i] != dir->times_source)
            code = dir_times_tell(shuntd, dir, coordinator->nodes[i]);
    return code;
}

static int dir_times_announce(struct shuntd *shuntd, struct home_dir *dir)
{
    uint16_t coordinator = route_of_dir(&shuntd->route, dir->id);
    dir->announced = dir->times.changed;
    return coordinator == shuntd->me.number ? dir_times_tell_users(shuntd, dir) : dir_times_tell(shuntd, dir, coordinator);
}

/* The sender had not heard yet that another daemon is the coordinator now: this one was, and has handed over all that it knew.
 */
static int dir_times_pass_on(struct shuntd *shuntd, uint16_t member, struct dirid id, const struct message_times *told)
{
    const uint16_t coordinator = route_of_dir(&shuntd->route, id);
    return coordinator == shuntd->me.number || coordinator == member ? 0 : dir_times_send(shuntd, coordinator, id, told);
}

/* What another daemon than the coordinator says goes to the coordinator, and from there to all that use the directory. */
int dir_times_take(struct shuntd *shuntd, uint16_t member, struct dirid id, const struct message_times *told)
{
    struct home_dir *dir = home_dir_find(shuntd->home, id);
    const struct home_times word = dir_times_taken(told);
    struct home_times before;
    if (dir == NULL)
        return dir_times_pass_on(shuntd, member, id, told);
    before = dir->times;
    int code = home_dir_merge_times(shuntd->home, dir, &word, member);
    if (!home_times_equal(&before, &dir->times) && member != route_of_dir(&shuntd->route, dir->id))
        home_dir_announce(shuntd->home, dir);
    return code;
}

int dir_times_step(struct shuntd *shuntd)
{
    const uint64_t now = shuntd->now;
    struct home_dir *dir;
    int code = 0;
    while (code == 0 && (dir = home_dir_next_to_announce(shuntd->home, now - TIMES_PAUSE)) != NULL)
        code = dir_times_announce(shuntd, dir);
    while (code == 0 && (dir = home_dir_next_to_write(shuntd->home, now - TIMES_QUIET)) != NULL)
        code = dir_times_write(shuntd, dir);
    return code;
}

uint64_t dir_times_due(struct shuntd *shuntd)
{
    return home_times_due(shuntd->home, TIMES_PAUSE, TIMES_QUIET);
}

/* Every daemon begins the round; what is being written, is written before. */
int dir_times_part_settle(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    const struct home_times new_round = {.round = message->settle.round};
    if (dir == NULL)
        return 0;
    int code = shuntd->coordinator_handlers->see_grants(shuntd);
    if (code != 0)
        return code;
    if (dir->writing) {
        collective_wait(collective, dir);
        return COLLECTIVE_LATER;
    }
    return home_dir_merge_times(shuntd->home, dir, &new_round, 0);
}

/* Writing. */

struct dir_times_job {
    struct disk_job job;
    struct dirid id;
    struct home_times times;
    int result;
    char path[PATH_MAX];
};

static int dir_times_look(int trunk, struct statx *stat)
{
    return sys_statx(trunk, "", AT_EMPTY_PATH, STATX_MTIME | STATX_CTIME, stat);
}

static int dir_times_write_time(int trunk, uint64_t modified)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, clock_split(modified)};
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", trunk); /* a descriptor of O_PATH takes no times itself */
    return sys_utimensat(AT_FDCWD, self, times, 0);
}

/* Gives the trunk directory the time of the last change, unless its own is later. That changes its change
 * time, which is not to be seen; attributes may have been changed later. */
static int dir_times_write_times(int trunk, struct home_times *times)
{
    struct statx stat;
    int code = dir_times_look(trunk, &stat);
    if (code != 0)
        return code;
    uint64_t ctime = clock_stamp(stat.stx_ctime), stood = ctime == times->settled ? times->stood : ctime;
    if (clock_stamp(stat.stx_mtime) < times->changed) {
        stood = stood > times->changed ? stood : times->changed;
        code = dir_times_write_time(trunk, times->changed);
        HOOK("trunk-told");
        if (code == 0)
            code = dir_times_look(trunk, &stat);
    }
    if (code != 0)
        return code;
    times->stood = stood;
    times->settled = clock_stamp(stat.stx_ctime);
    return 0;
}

static void dir_times_carry_out(struct disk_job *base, const struct shuntd *shuntd)
{
    struct dir_times_job *job = (struct dir_times_job *)base;
    int trunk = disk_open_trunk(shuntd, job->path, job->id);
    job->result = trunk;
    if (trunk < 0)
        return;
    job->result = dir_times_write_times(trunk, &job->times);
    job->times.written = job->result == 0;
    sys_close(trunk);
}

/* Until CephFS has a change of a directory in its journal, some seconds later or when somebody wants it, it lets no client
 * know the directory: each create asks for it again, and costs two requests. To no avail is no error. */
static void dir_times_flush(struct disk_job *base, const struct shuntd *shuntd)
{
    struct dir_times_job *job = (struct dir_times_job *)base;
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
static void dir_times_flush_next(struct shuntd *shuntd)
{
    if (shuntd->flushing != NULL || shuntd->to_flush == NULL)
        return;
    shuntd->flushing = shuntd->to_flush;
    shuntd->to_flush = NULL;
    disk_submit(shuntd->disk, &shuntd->flushing->job);
}

static int dir_times_flushed(struct disk_job *base, struct shuntd *shuntd)
{
    (void)base;
    free(shuntd->flushing);
    shuntd->flushing = NULL;
    dir_times_flush_next(shuntd);
    return 0;
}

/* Takes the job. */
static void dir_times_have_flushed(struct shuntd *shuntd, struct dir_times_job *job)
{
    job->job = (struct disk_job){.carry_out = dir_times_flush, .finish = dir_times_flushed};
    free(shuntd->to_flush);
    shuntd->to_flush = job;
    dir_times_flush_next(shuntd);
}

/* Not tried again, and still shown to this session's processes; but where the directory, or one above it, has been renamed and
 * its place was not told yet, it is tried there. */
static void dir_times_not_written(struct home_dir *dir, const struct dir_times_job *job)
{
    if (disk_is_elsewhere(job->result)) {
        if (strcmp(dir->path, job->path) == 0)
            home_dir_misplaced(dir);
        return;
    }
    log_warning("%s: its times cannot be written: %s", dir->path, strerror(-job->result));
    if (dir->times.changed == job->times.changed)
        list_remove(&dir->unwritten);
}

static int dir_times_finish(struct disk_job *base, struct shuntd *shuntd)
{
    struct dir_times_job *job = (struct dir_times_job *)base;
    struct home_dir *dir = home_dir_find(shuntd->home, job->id);
    int code = 0;
    if (job->result != 0) {
        dir_times_not_written(dir, job);
    } else {
        code = home_dir_merge_times(shuntd->home, dir, &job->times, 0);
        list_remove(&dir->unannounced);
        if (code == 0) /* at once: until they hear of it, readers of other nodes see the change time that this gave the trunk */
            code = dir_times_announce(shuntd, dir);
    }
    if (code == 0)
        code = home_dir_times_written(shuntd->home, dir);
    home_dir_release(shuntd->home, dir);
    if (job->result == 0 && listen_is_slow_lookup(shuntd->listen))
        dir_times_have_flushed(shuntd, job);
    else
        free(job);
    return code;
}

static struct dir_times_job *dir_times_job(const struct home_dir *dir)
{
    struct dir_times_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return NULL;
    job->job = (struct disk_job){.carry_out = dir_times_carry_out, .finish = dir_times_finish};
    job->id = dir->id;
    job->times = dir->times;
    strcpy(job->path, dir->path);
    return job;
}

int dir_times_write(struct shuntd *shuntd, struct home_dir *dir)
{
    struct dir_times_job *job = dir_times_job(dir);
    if (job == NULL)
        return -ENOMEM;
    dir->writing = true;
    const int code = home_dir_publish_times(shuntd->home, dir);
    disk_submit(shuntd->disk, &job->job);
    return code;
}

void dir_times_write_all(struct shuntd *shuntd)
{
    for (struct home_dir *dir; (dir = home_dir_next_to_write(shuntd->home, UINT64_MAX)) != NULL;) {
        struct dir_times_job *job = dir_times_job(dir);
        list_remove(&dir->unwritten);
        if (job != NULL)
            dir_times_carry_out(&job->job, shuntd);
        free(job);
    }
}

/* What the coordinator is told that is about to be one waits until it is. */
int dir_times_take_item(struct shuntd *shuntd, uint16_t member, const struct frame_item *item, const struct message *message)
{
    bool rules = route_of_dir(&shuntd->route, message->dir) == shuntd->me.number;
    return rules && route_is_awaited(&shuntd->route, record_shard(message->dir, 0))
               ? rpc_defer(shuntd, member, item)
               : dir_times_take(shuntd, member, message->dir, &message->times);
}
