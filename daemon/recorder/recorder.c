/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "recorder/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "catalogue/known.h"
#include "recorder/record_job.h"
#include "coordinator/dir_times.h"
#include "disk/disk.h"
#include "home/home.h"
#include "listen/listen.h"

#define RECORDER_PATIENCE (64 * CLOCK_SECOND)     /* with a directory that changes whenever it is read */
#define RECORDER_COPIES_AFTER (60 * CLOCK_SECOND) /* while it is quiet; after a copy that took long, later */

enum recorder_state {
    RECORDER_SERVES,
    RECORDER_ENDS, /* the last job is under way */
    RECORDER_HAS_ENDED,
};

struct recorder {
    struct disk *disk; /* one thread */
    struct catalogue *live;
    struct known *known;
    struct record_places *places; /* the thread's */
    char path[SESSION_RUN_MAX + 16];
    enum recorder_state state;
    bool is_under_way;
    int failed;
    uint64_t served;           /* how much had been served (recorder_served) when it was looked at last, */
    uint64_t busy_at;          /* and when that was seen, monotonic; UINT64_MAX: it has been looked at since */
    uint64_t quiet;            /* ns after that it looks */
    uint64_t behind_since;     /* monotonic; 0: it is complete */
    uint64_t may_copy_at;      /* monotonic */
    struct record_dirs at_end; /* what was known when the end was asked for */
    struct catalogue_size size;
};

static void recorder_ring(struct shuntd *shuntd)
{
    listen_ring(shuntd->listen);
}

/* Nobody else may put a file in our way. */
static int recorder_make_private(const char *directory)
{
    struct stat stat;
    if ((mkdir(directory, 0700) != 0 && errno != EEXIST) || lstat(directory, &stat) != 0)
        return -errno;
    return S_ISDIR(stat.st_mode) && stat.st_uid == geteuid() && (stat.st_mode & 077) == 0 ? 0 : -EPERM;
}

/* In the run directory, or below SHUNT_CATALOGUE_DIR as that is below its own. */
static int recorder_name(const struct shuntd *shuntd, char *path, size_t size)
{
    char directory[SESSION_RUN_MAX], *slash;
    struct text t;
    text_init(&t, directory, sizeof directory);
    if (shuntd->options.catalogue_base == NULL)
        text_add(&t, shuntd->run_dir);
    else
        session_run_dir(&t, shuntd->options.catalogue_base, geteuid(), shuntd->root.device, shuntd->root.id.ino,
                        shuntd->options.node);
    if (!text_ok(&t))
        return -ENAMETOOLONG;
    slash = strrchr(directory, '/');
    *slash = '\0';
    int code = recorder_make_private(directory);
    *slash = '/';
    if (code == 0)
        code = recorder_make_private(directory);
    snprintf(path, size, "%s/" LAYOUT_CATALOGUE, directory);
    return code;
}

static void recorder_fail(struct recorder *recorder, int code)
{
    if (recorder->failed == 0)
        log_warning("%s: the catalogue is not written any more: %s", recorder->path, strerror(-code));
    recorder->failed = code;
}

/* Beside the catalogue. */
static void recorder_let_spill(struct shuntd *shuntd, const struct recorder *recorder)
{
    char base[sizeof recorder->path + sizeof "-spilled"];
    snprintf(base, sizeof base, "%s-spilled", recorder->path);
    home_set_spill(shuntd->home, shuntd->options.index_limit, base);
}

int recorder_create(struct shuntd *shuntd)
{
    struct recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder == NULL)
        return -ENOMEM;
    shuntd->recorder = recorder;
    int code = recorder_name(shuntd, recorder->path, sizeof recorder->path);
    if (code == 0)
        code = catalogue_open(&recorder->live, recorder->path, shuntd->root.id);
    if (code == 0)
        code = catalogue_measure(recorder->live, &recorder->size);
    if (code != 0)
        recorder_fail(recorder, code);
    else
        recorder_let_spill(shuntd, recorder);
    code = known_create(&recorder->known, &shuntd->root, recorder->live, 0);
    if (code == 0 && (recorder->places = record_places_create()) == NULL)
        code = -ENOMEM;
    if (code == 0)
        code = disk_create(&recorder->disk, shuntd, 1, recorder_ring, NULL);
    if (code == 0)
        shuntd->root.source = known_source(recorder->known);
    return code;
}

void recorder_destroy(struct shuntd *shuntd)
{
    struct recorder *recorder = shuntd->recorder;
    if (recorder == NULL)
        return;
    disk_destroy(recorder->disk);
    shuntd->root.source = NULL;
    record_dirs_free(&recorder->at_end);
    record_places_destroy(recorder->places);
    known_destroy(recorder->known);
    catalogue_close(recorder->live);
    free(recorder);
    shuntd->recorder = NULL;
}

/* What may have changed names, or made directories known. */
static uint64_t recorder_served(const struct shuntd *shuntd)
{
    const struct shuntd_counts *counts = &shuntd->counts;
    return counts->creates + counts->unlinks + counts->renames + counts->loads;
}

/* Something was changed while it was looked at. */
static void recorder_try_again(struct recorder *recorder, uint64_t now)
{
    if (recorder->busy_at == UINT64_MAX)
        recorder->busy_at = now;
    recorder->quiet = recorder->quiet < RECORDER_PATIENCE ? 2 * recorder->quiet : RECORDER_PATIENCE;
}

static int recorder_finish_job(struct disk_job *job, struct shuntd *shuntd)
{
    struct record_job *record = (struct record_job *)job;
    struct recorder *recorder = shuntd->recorder;
    recorder->is_under_way = false;
    if (record->result == 0)
        recorder->size = record->size;
    if (record->result != 0)
        recorder_fail(recorder, record->result);
    else if (!record->is_complete)
        recorder_try_again(recorder, shuntd->now);
    else if (recorder_served(shuntd) == record->served)
        recorder->behind_since = 0;
    if (record->copied > 0)
        recorder->may_copy_at = shuntd->now + RECORDER_COPIES_AFTER + 100 * record->copied;
    if (record->is_last)
        recorder->state = RECORDER_HAS_ENDED;
    record_job_free(record);
    return 0;
}

/* Takes over the directories. */
static int recorder_submit(struct shuntd *shuntd, struct record_dirs *dirs, bool is_last)
{
    struct recorder *recorder = shuntd->recorder;
    struct record_job *job = record_job_create(shuntd, recorder->live, recorder->known, recorder->places, dirs);
    if (job == NULL)
        return -ENOMEM;
    job->job.finish = recorder_finish_job;
    job->served = recorder_served(shuntd);
    job->is_last = is_last;
    job->is_to_copy = is_last || shuntd->now >= recorder->may_copy_at;
    recorder->is_under_way = true;
    disk_submit(recorder->disk, &job->job);
    return 0;
}

static int recorder_finish_jobs(struct shuntd *shuntd)
{
    int code = 0;
    for (struct disk_job *job; code == 0 && (job = disk_next_done(shuntd->recorder->disk)) != NULL;)
        code = job->finish(job, shuntd);
    return code;
}

/* What changes the times of a directory now would be seen too late. */
static bool recorder_is_settled(struct shuntd *shuntd)
{
    return dir_times_due(shuntd) == UINT64_MAX && !disk_is_busy(shuntd->disk);
}

static void recorder_watch(struct shuntd *shuntd)
{
    struct recorder *recorder = shuntd->recorder;
    const uint64_t served = recorder_served(shuntd);
    if (served == recorder->served)
        return;
    recorder->served = served;
    recorder->busy_at = shuntd->now;
    recorder->quiet = shuntd->options.catalogue_quiet;
    if (recorder->behind_since == 0)
        recorder->behind_since = shuntd->now;
}

/* Out of memory, it tries again later: nothing else is to suffer by that. */
static void recorder_look(struct shuntd *shuntd)
{
    struct recorder *recorder = shuntd->recorder;
    struct record_dirs dirs = {0};
    int code = record_dirs_of(&dirs, shuntd);
    recorder->busy_at = UINT64_MAX; /* until something is served again */
    if (code == 0)
        code = recorder_submit(shuntd, &dirs, false);
    if (code != 0)
        recorder_try_again(recorder, shuntd->now);
}

int recorder_step(struct shuntd *shuntd)
{
    struct recorder *recorder = shuntd->recorder;
    int code = recorder_finish_jobs(shuntd);
    if (code != 0 || recorder->failed != 0)
        return code;
    recorder_watch(shuntd);
    if (shuntd->stop == 0 && recorder_due(shuntd) <= shuntd->now)
        recorder_look(shuntd);
    return 0;
}

void recorder_note_end(struct shuntd *shuntd)
{
    struct recorder *recorder = shuntd->recorder;
    if (recorder->failed == 0 && recorder->at_end.dirs == NULL && recorder->state == RECORDER_SERVES)
        record_dirs_of(&recorder->at_end, shuntd);
}

uint64_t recorder_due(struct shuntd *shuntd)
{
    const struct recorder *recorder = shuntd->recorder;
    const bool is_idle = recorder->behind_since == 0 || recorder->busy_at == UINT64_MAX;
    if (is_idle || recorder->failed != 0 || recorder->is_under_way || !recorder_is_settled(shuntd))
        return UINT64_MAX;
    return recorder->busy_at + recorder->quiet;
}

bool recorder_is_ending(struct shuntd *shuntd)
{
    struct recorder *recorder = shuntd->recorder;
    if (recorder->failed != 0)
        return false;
    if (recorder->state == RECORDER_SERVES && !recorder->is_under_way) {
        dir_times_write_all(shuntd);
        recorder_note_end(shuntd);
        recorder->state = recorder_submit(shuntd, &recorder->at_end, true) == 0 ? RECORDER_ENDS : RECORDER_HAS_ENDED;
    }
    return recorder->state != RECORDER_HAS_ENDED;
}

void recorder_get_status(struct shuntd *shuntd, struct recorder_status *status)
{
    const struct recorder *recorder = shuntd->recorder;
    struct known_counts counts;
    *status = (struct recorder_status){.path = ""};
    if (recorder == NULL)
        return;
    known_count(recorder->known, &counts);
    recorder_watch(shuntd);
    *status = (struct recorder_status){.path = recorder->path,
                                       .failed = recorder->failed,
                                       .bytes = recorder->size.bytes,
                                       .directories = recorder->size.directories,
                                       .names = recorder->size.names,
                                       .taken = counts.taken,
                                       .behind = recorder->behind_since == 0 ? 0 : shuntd->now - recorder->behind_since + 1};
}

void recorder_remove_files(const struct shuntd *shuntd)
{
    char path[SESSION_RUN_MAX + 16];
    if (recorder_name(shuntd, path, sizeof path) != 0)
        return;
    catalogue_remove(path);
    *strrchr(path, '/') = '\0';
    if (strcmp(path, shuntd->run_dir) != 0)
        rmdir(path);
}
