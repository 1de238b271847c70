/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "serve/beat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "disk/disk.h"

struct beat_job {
    struct disk_job job;
    struct session session; /* which it is, no members */
    uint16_t number;
    int result;
};

uint64_t beat_interval(const struct shuntd *shuntd)
{
    return shuntd->session.count > 1 ? session_beat_interval(shuntd->session.count) : 0;
}

static void carry_out(struct disk_job *base, const struct shuntd *shuntd)
{
    struct beat_job *job = (struct beat_job *)base;
    job->result = session_beat(shuntd->root.path, &job->session, job->number);
}

static int finish(struct disk_job *base, struct shuntd *shuntd)
{
    struct beat_job *job = (struct beat_job *)base;
    if (job->result != 0 && job->result != shuntd->beat_failed)
        log_line("the session cannot be told that this daemon lives: %s", strerror(-job->result));
    shuntd->beat_failed = job->result;
    shuntd->beats = false;
    free(job);
    return 0;
}

int beat_step(struct shuntd *shuntd)
{
    uint64_t interval = beat_interval(shuntd), now = interval != 0 ? clock_monotonic() : 0;
    if (interval == 0 && shuntd->next_beat != 0 && !shuntd->beats) {
        shuntd->next_beat = 0;
        session_beat_end(shuntd->root.path, &shuntd->session, shuntd->me.number);
    }
    if (interval == 0 || shuntd->beats || shuntd->stop != 0 || now < shuntd->next_beat)
        return 0;
    struct beat_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return -ENOMEM;
    job->job = (struct disk_job){.carry_out = carry_out, .finish = finish};
    job->session = (struct session){.id = shuntd->session.id, .founded = shuntd->session.founded};
    job->number = shuntd->me.number;
    shuntd->beats = true;
    shuntd->next_beat = now + interval;
    disk_submit(shuntd->disk, &job->job);
    return 0;
}
