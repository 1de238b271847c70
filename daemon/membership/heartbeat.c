/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/heartbeat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/log.h"
#include "coordinator/coordinator.h"
#include "disk/disk.h"
#include "listen/listen.h"
#include "membership/session_view.h"
#include "request/channel.h"

struct heartbeat_job {
    struct disk_job job;
    struct session session; /* which it is, no members */
    uint16_t number;
    uint64_t began; /* clock_boot */
    uint64_t epoch; /* that was in force after it */
    int result;
};

static void heartbeat_note_beat(struct shuntd *shuntd, int result)
{
    if (result != 0 && result != shuntd->heartbeat_failed)
        log_warning("session: the heartbeat of this daemon cannot be written: %s", strerror(-result));
    shuntd->heartbeat_failed = result;
}

uint64_t heartbeat_interval(const struct shuntd *shuntd)
{
    return session_beat_interval(shuntd->session.count);
}

/* It has sent a heartbeat as it founded or joined the session, and has a lease from before that. */
void heartbeat_adopt(struct shuntd *shuntd)
{
    if (listen_lease(shuntd->listen) == CHANNEL_FOR_EVER)
        listen_set_lease(shuntd->listen, shuntd->joined + shuntd->session.lease);
}

/* The session is read after the heartbeat: a member that publishes that this daemon is lost does so after that, and then
 * sees the heartbeat, or comes before it, and is seen. */
static void heartbeat_carry_out(struct disk_job *base, const struct shuntd *shuntd)
{
    struct heartbeat_job *job = (struct heartbeat_job *)base;
    job->began = clock_boot();
    HOOK("heartbeat-begun");
    job->result = session_beat(shuntd->root.path, &job->session, job->number);
    if (job->result == 0)
        job->result = session_epoch(shuntd->root.path, &job->epoch);
}

static int heartbeat_renew(struct shuntd *shuntd, const struct heartbeat_job *job)
{
    const bool had_lease = coordinator_has_lease(shuntd);
    int code = job->epoch > shuntd->session.epoch ? session_view_refresh(shuntd) : 0;
    if (code != 0 || shuntd->cut_off || shuntd->session.epoch < job->epoch)
        return code;
    listen_set_lease(shuntd->listen, job->began + shuntd->session.lease);
    return had_lease ? 0 : coordinator_resume_all(shuntd);
}

static int heartbeat_finish(struct disk_job *base, struct shuntd *shuntd)
{
    struct heartbeat_job *job = (struct heartbeat_job *)base;
    heartbeat_note_beat(shuntd, job->result);
    shuntd->heartbeat_under_way = false;
    int code = job->result == 0 ? heartbeat_renew(shuntd, job) : 0;
    free(job);
    return code;
}

static int heartbeat_beat(struct shuntd *shuntd)
{
    struct heartbeat_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return -ENOMEM;
    job->job = (struct disk_job){.carry_out = heartbeat_carry_out, .finish = heartbeat_finish};
    job->session = (struct session){.id = shuntd->session.id, .founded = shuntd->session.founded};
    job->number = shuntd->me.number;
    shuntd->heartbeat_under_way = true;
    disk_submit(shuntd->heartbeat_disk, &job->job);
    return 0;
}

void heartbeat_note_stall(struct shuntd *shuntd)
{
    if (BROKEN("stall-unwaited"))
        return;
    __atomic_store_n(&shuntd->stalled, clock_monotonic(), __ATOMIC_RELAXED);
    listen_add_stall(shuntd->listen);
}

int heartbeat_step(struct shuntd *shuntd)
{
    uint64_t interval = heartbeat_interval(shuntd);
    if (shuntd->cut_off) {
        HOOK("cut-off");
        log_warning("session: has gone on without this daemon, which was silent for too long");
        return -ESTALE;
    }
    if (shuntd->now < shuntd->next_heartbeat)
        return 0;
    shuntd->next_heartbeat = shuntd->now + interval;
    if (shuntd->heartbeat_under_way)
        heartbeat_note_stall(shuntd);
    return shuntd->heartbeat_under_way ? 0 : heartbeat_beat(shuntd);
}
