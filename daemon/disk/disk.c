/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "disk/disk.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/faults.h"
#include "base/hook.h"
#include "base/sys.h"
#include "disk/stall_watch.h"
#include "shuntd.h"
#include "union/disk.h"
#include "union/identity.h"

#define THREADS_MAX 16

struct disk {
    struct shuntd *shuntd;
    void (*ring)(struct shuntd *);
    struct stall_watch *watch; /* NULL: nobody waits for what it does */
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct link waiting, done;
    unsigned open; /* submitted, not yet taken back */
    bool ending;
    unsigned thread_count;
    pthread_t threads[THREADS_MAX];
};

static struct disk_job *disk_next_waiting(struct disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    while (list_empty(&disk->waiting) && !disk->ending)
        pthread_cond_wait(&disk->work, &disk->lock);
    struct link *link = list_take(&disk->waiting);
    pthread_mutex_unlock(&disk->lock);
    return link != NULL ? LINK_OF(link, struct disk_job, link) : NULL;
}

static void *disk_work(void *context)
{
    struct disk *disk = context;
    struct disk_job *job;
    while ((job = disk_next_waiting(disk)) != NULL) {
        struct stall_watch_call call;
        stall_watch_begin(disk->watch, &call);
        job->carry_out(job, disk->shuntd);
        stall_watch_end(disk->watch, &call);
        pthread_mutex_lock(&disk->lock);
        list_append(&disk->done, &job->link);
        pthread_mutex_unlock(&disk->lock);
        disk->ring(disk->shuntd);
    }
    return NULL;
}

/* The threads take no signals: main's is the one that SIGTERM must reach. */
static int disk_start_threads(struct disk *disk, unsigned threads)
{
    sigset_t all, before;
    int code = 0;
    faults_excepted(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (code == 0 && disk->thread_count < threads && disk->thread_count < THREADS_MAX) {
        code = pthread_create(&disk->threads[disk->thread_count], NULL, disk_work, disk);
        disk->thread_count += code == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -code;
}

int disk_create(struct disk **to, struct shuntd *shuntd, unsigned threads, void (*ring)(struct shuntd *),
                struct stall_watch *watch)
{
    struct disk *disk = calloc(1, sizeof *disk);
    if (disk == NULL)
        return -ENOMEM;
    disk->shuntd = shuntd;
    disk->ring = ring;
    disk->watch = watch;
    pthread_mutex_init(&disk->lock, NULL);
    pthread_cond_init(&disk->work, NULL);
    list_init(&disk->waiting);
    list_init(&disk->done);
    int code = disk_start_threads(disk, threads);
    if (code != 0) {
        disk_destroy(disk);
        return code;
    }
    *to = disk;
    return 0;
}

void disk_destroy(struct disk *disk)
{
    if (disk == NULL)
        return;
    pthread_mutex_lock(&disk->lock);
    disk->ending = true;
    pthread_cond_broadcast(&disk->work);
    pthread_mutex_unlock(&disk->lock);
    for (unsigned i = 0; i < disk->thread_count; i++)
        pthread_join(disk->threads[i], NULL);
    pthread_cond_destroy(&disk->work);
    pthread_mutex_destroy(&disk->lock);
    free(disk);
}

void disk_submit(struct disk *disk, struct disk_job *job)
{
    pthread_mutex_lock(&disk->lock);
    list_append(&disk->waiting, &job->link);
    disk->open++;
    pthread_cond_signal(&disk->work);
    pthread_mutex_unlock(&disk->lock);
}

struct disk_job *disk_next_done(struct disk *disk)
{
    if (list_seems_empty(&disk->done))
        return NULL;
    pthread_mutex_lock(&disk->lock);
    struct link *link = list_take(&disk->done);
    disk->open -= link != NULL;
    pthread_mutex_unlock(&disk->lock);
    return link != NULL ? LINK_OF(link, struct disk_job, link) : NULL;
}

bool disk_is_busy(struct disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    bool busy = disk->open > 0;
    pthread_mutex_unlock(&disk->lock);
    return busy;
}

bool disk_is_elsewhere(int code)
{
    return code == -ENOENT || code == -ENOTDIR || code == -ESTALE;
}

int disk_stale_if_elsewhere(int code)
{
    return disk_is_elsewhere(code) ? -ESTALE : code;
}

static int disk_open_trunk_as_known(const struct shuntd *shuntd, const char *path, struct dirid id)
{
    char full[2 * PATH_MAX];
    struct statx stat;
    snprintf(full, sizeof full, "%s/%s", shuntd->root.path, path);
    int fd = sys_openat(AT_FDCWD, full, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    int code = identity_stat(shuntd->root.id, fd, "", AT_EMPTY_PATH, &stat);
    if (code == 0 && dirid_equal(dirid_of(&stat), id))
        return fd;
    sys_close(fd);
    return code != 0 ? code : -ESTALE;
}

int disk_open_trunk(const struct shuntd *shuntd, const char *path, struct dirid id)
{
    struct statx parent, stat;
    int fd = disk_open_trunk_as_known(shuntd, path, id);
    if (!disk_is_elsewhere(fd) || !shuntd->root.keeps_names || BROKEN("trunk-as-known"))
        return fd;
    disk_look_freshly(shuntd->root.path, path, &parent, &stat);
    return disk_open_trunk_as_known(shuntd, path, id);
}
