/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "disk/stall_watch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/faults.h"

#define HELD_UP (CLOCK_SECOND / 2) /* less than the shortest SHUNT_DEADLINE */

struct stall_watch {
    struct shuntd *shuntd;
    void (*held_up)(struct shuntd *);
    pthread_mutex_t lock;
    pthread_cond_t begun;
    struct link calls; /* in the order in which they began */
    bool sleeps;       /* until one begins */
    bool ending;
    pthread_t thread;
};

/* Until the first one of those under way, if it lasts, is held up: monotonic. */
static uint64_t stall_watch_due(const struct stall_watch *watch, uint64_t told)
{
    const uint64_t began = LINK_OF(watch->calls.next, struct stall_watch_call, link)->began;
    return (began > told ? began : told) + HELD_UP;
}

static void stall_watch_sleep(struct stall_watch *watch, uint64_t told)
{
    if (list_empty(&watch->calls)) {
        watch->sleeps = true;
        pthread_cond_wait(&watch->begun, &watch->lock);
        watch->sleeps = false;
    } else {
        const struct timespec due = clock_split(stall_watch_due(watch, told));
        pthread_cond_timedwait(&watch->begun, &watch->lock, &due);
    }
}

static void *stall_watch_work(void *context)
{
    struct stall_watch *watch = context;
    uint64_t told = 0;
    pthread_mutex_lock(&watch->lock);
    while (!watch->ending) {
        const uint64_t now = clock_monotonic();
        if (!list_empty(&watch->calls) && stall_watch_due(watch, told) <= now) {
            watch->held_up(watch->shuntd);
            told = now;
        }
        stall_watch_sleep(watch, told);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* It takes no signals, as those of disk/. */
static int stall_watch_start(struct stall_watch *watch)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->begun, &monotonic);
    pthread_condattr_destroy(&monotonic);
    faults_excepted(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&watch->thread, NULL, stall_watch_work, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -code;
}

int stall_watch_create(struct stall_watch **to, struct shuntd *shuntd, void (*held_up)(struct shuntd *))
{
    struct stall_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return -ENOMEM;
    watch->shuntd = shuntd;
    watch->held_up = held_up;
    pthread_mutex_init(&watch->lock, NULL);
    list_init(&watch->calls);
    const int code = stall_watch_start(watch);
    if (code == 0)
        *to = watch;
    else
        free(watch);
    return code;
}

void stall_watch_destroy(struct stall_watch *watch)
{
    if (watch == NULL)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->ending = true;
    pthread_cond_signal(&watch->begun);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->begun);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

/* The thread that has something to look at wakes by itself. */
void stall_watch_begin(struct stall_watch *watch, struct stall_watch_call *call)
{
    if (watch == NULL)
        return;
    pthread_mutex_lock(&watch->lock);
    call->began = clock_monotonic();
    list_append(&watch->calls, &call->link);
    if (watch->sleeps)
        pthread_cond_signal(&watch->begun);
    pthread_mutex_unlock(&watch->lock);
}

void stall_watch_end(struct stall_watch *watch, struct stall_watch_call *call)
{
    if (watch == NULL)
        return;
    pthread_mutex_lock(&watch->lock);
    list_remove(&call->link);
    pthread_mutex_unlock(&watch->lock);
}
