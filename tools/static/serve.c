/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serve.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "base/clock.h"
#include "kernel.h"

#define SERVE_STACK (256u << 10)

static struct {
    int listener;
    struct serve_board *board;
    sem_t lead;
    atomic_uint idle, count;
    uint64_t time; /* of a processor, in ns, that may be used here; 0: any */
} serve_state;

static bool serve_start_another(void);

/* Before what may last: another one waits for calls meanwhile. */
static void serve_hand_on(void)
{
    if (atomic_load(&serve_state.idle) == 0)
        serve_start_another();
    sem_post(&serve_state.lead);
}

static bool serve_has_ended(int timeout)
{
    struct pollfd state = {serve_state.listener, 0, 0};
    return poll(&state, 1, timeout) > 0 && (state.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

/* The next call; the kernel writes it on the board itself. False: there will be none. */
static bool serve_receive(struct seccomp_notif *call)
{
    for (;;) {
        memset(call, 0, sizeof *call);
        if (SYS3(SYS_ioctl, serve_state.listener, SECCOMP_IOCTL_NOTIF_RECV, call) == 0)
            return true;
        if (serve_has_ended(0)) /* else it is a call whose program was killed, or a signal */
            return false;
    }
}

static void serve_read_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        serve_state.time = limit.rlim_cur * CLOCK_SECOND / 2;
}

static bool serve_has_time(void)
{
    struct timespec used;
    return serve_state.time == 0 || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0 ||
           (uint64_t)used.tv_sec * CLOCK_SECOND + (uint64_t)used.tv_nsec < serve_state.time;
}

/* By the one that leads: the others end what they have under way, and there is nothing new. */
static void serve_make_way(void)
{
    const struct timespec pause = {.tv_nsec = CLOCK_MILLISECOND};
    while (atomic_load(&serve_state.idle) + 1 < atomic_load(&serve_state.count))
        nanosleep(&pause, NULL);
    _exit(SERVE_AGAIN);
}

struct serve_worker {
    struct seccomp_notif *call; /* on the board */
    struct arguments arguments;
};

/* One at a time waits for calls, and answers at once what goes on in the kernel: the kernel would wake all that wait. */
static void *serve_work(void *of)
{
    struct serve_worker *worker = of;
    struct seccomp_notif *call = worker->call;
    struct arguments *arguments = &worker->arguments;
    bool leads = false;
    SYS1(SYS_unshare, CLONE_FS);
    for (;;) {
        if (!leads) {
            atomic_fetch_add(&serve_state.idle, 1);
            while (sem_wait(&serve_state.lead) != 0)
                continue;
            atomic_fetch_sub(&serve_state.idle, 1);
        }
        if (!serve_has_time())
            serve_make_way();
        if (!serve_receive(call))
            break;
        leads = answer_at_once(serve_state.listener, call, arguments);
        if (!leads) {
            serve_hand_on();
            answer_here(serve_state.listener, call, arguments);
        }
    }
    free(worker);
    return NULL;
}

static bool serve_start(struct serve_worker *worker)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SERVE_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const bool is_started = pthread_create(&thread, &attributes, serve_work, worker) == 0;
    pthread_attr_destroy(&attributes);
    return is_started;
}

/* False: there is no room for one more. The others will be free: nothing here waits for what the program does. */
static bool serve_start_another(void)
{
    const unsigned number = atomic_fetch_add(&serve_state.count, 1);
    struct serve_worker *worker = number < SERVE_WORKERS ? malloc(sizeof *worker) : NULL;
    if (worker != NULL)
        worker->call = &serve_state.board->calls[number];
    if (worker != NULL && serve_start(worker))
        return true;
    free(worker);
    atomic_fetch_sub(&serve_state.count, 1);
    return false;
}

enum serve_end serve_all(int listener, struct serve_board *board)
{
    serve_state.listener = listener;
    serve_state.board = board;
    sem_init(&serve_state.lead, 0, 1);
    caller_start();
    SYS3(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS,
         SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP); /* a quicker change of hands */
    serve_read_limit();
    if (!serve_start_another())
        return SERVE_CANNOT;
    while (!serve_has_ended(-1))
        continue;
    return SERVE_DONE;
}
