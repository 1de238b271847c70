/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "pages.h"

#include <fuse_lowlevel.h>
#include <stdlib.h>

#include "base/clock.h"
#include "catalogue/take.h"

#define PAGES_SECONDS (3 * CLOCK_SECOND) /* where times are of whole seconds, or of two */

struct pages_to_drop {
    struct pages *pages;
    fuse_req_t request; /* until it is answered, the inode is there */
    uint64_t number;
    struct stat stat;
    uint64_t doubts; /* that are over then */
    STAILQ_ENTRY(pages_to_drop) next;
};

static pthread_mutex_t pages_lock = PTHREAD_MUTEX_INITIALIZER;

static bool pages_is_time(struct timespec one, struct timespec other)
{
    return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

void pages_are_read(struct pages *pages)
{
    pthread_mutex_lock(&pages_lock);
    const uint64_t stands = pages->changed.tv_nsec == 0 ? PAGES_SECONDS : TAKE_STANDS;
    if (clock_monotonic() < pages->stood_since + stands)
        pages->doubts++;
    pthread_mutex_unlock(&pages_lock);
}

void pages_are_written(struct pages *pages)
{
    pthread_mutex_lock(&pages_lock);
    pages->doubts++;
    pthread_mutex_unlock(&pages_lock);
}

/* The doubts that the kernel has to be told of, or 0: it sees by itself that the pages are old, if there are any. */
static uint64_t pages_tell(struct pages *pages, const struct stat *stat)
{
    const bool is_seen = pages->size != stat->st_size || !pages_is_time(pages->modified, stat->st_mtim);
    const bool is_changed = !pages_is_time(pages->changed, stat->st_ctim);
    if (is_seen)
        pages->settled = pages->doubts;
    else if (is_changed)
        pages->doubts++;
    if (is_changed)
        pages->stood_since = clock_monotonic();
    pages->size = stat->st_size;
    pages->modified = stat->st_mtim;
    pages->changed = stat->st_ctim;
    return pages->doubts > pages->settled ? pages->doubts : 0;
}

void pages_told(struct pages *pages, const struct stat *stat)
{
    pthread_mutex_lock(&pages_lock);
    pages_tell(pages, stat);
    pthread_mutex_unlock(&pages_lock);
}

static void pages_settle(struct pages *pages, uint64_t doubts)
{
    pthread_mutex_lock(&pages_lock);
    if (pages->settled < doubts)
        pages->settled = doubts;
    pthread_mutex_unlock(&pages_lock);
}

void pages_reply(struct pages_dropper *dropper, struct pages *pages, fuse_req_t request, uint64_t number,
                 const struct stat *stat)
{
    pthread_mutex_lock(&pages_lock);
    const uint64_t doubts = S_ISREG(stat->st_mode) ? pages_tell(pages, stat) : 0;
    pthread_mutex_unlock(&pages_lock);
    struct pages_to_drop *drop = doubts > 0 ? malloc(sizeof *drop) : NULL;
    if (!drop) {
        fuse_reply_attr(request, stat, 0);
        return;
    }
    *drop = (struct pages_to_drop){.pages = pages, .request = request, .number = number, .stat = *stat, .doubts = doubts};
    pthread_mutex_lock(&dropper->lock);
    STAILQ_INSERT_TAIL(&dropper->queue, drop, next);
    pthread_cond_signal(&dropper->is_asked);
    pthread_mutex_unlock(&dropper->lock);
}

void pages_dropper_init(struct pages_dropper *dropper)
{
    pthread_mutex_init(&dropper->lock, NULL);
    pthread_cond_init(&dropper->is_asked, NULL);
    STAILQ_INIT(&dropper->queue);
}

static struct pages_to_drop *pages_dropper_next(struct pages_dropper *dropper)
{
    pthread_mutex_lock(&dropper->lock);
    while (STAILQ_EMPTY(&dropper->queue))
        pthread_cond_wait(&dropper->is_asked, &dropper->lock);
    struct pages_to_drop *drop = STAILQ_FIRST(&dropper->queue);
    STAILQ_REMOVE_HEAD(&dropper->queue, next);
    pthread_mutex_unlock(&dropper->lock);
    return drop;
}

void pages_dropper_run(struct pages_dropper *dropper, struct fuse_session *session)
{
    for (;;) {
        struct pages_to_drop *drop = pages_dropper_next(dropper);
        fuse_lowlevel_notify_inval_inode(session, drop->number, 0, 0);
        pages_settle(drop->pages, drop->doubts);
        fuse_reply_attr(drop->request, &drop->stat, 0);
        free(drop);
    }
}
