/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serve.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
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
    int watch; /* an epoll, of the listener: where those wait that do not lead */
    struct serve_board *board;
    atomic_uint busy; /* the number of the one that leads and has a call under way which may last; 0: it waits for calls */
    atomic_uint idle, count;
    uint64_t time; /* of a processor, in ns, that may be used here; 0: any */
} serve_state;

struct serve_worker {
    unsigned number;            /* from 1 on */
    struct seccomp_notif *call; /* on the board */
    struct arguments arguments;
};

static bool serve_start_another(void);

static int serve_watch(int how)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    return epoll_ctl(serve_state.watch, how, serve_state.listener, &event);
}

/* Before what may last: should another call come meanwhile, another one leads. One that took over a moment before may have
 * left the listener watched. */
static void serve_may_be_relieved(const struct serve_worker *worker)
{
    if (atomic_load(&serve_state.idle) == 0)
        serve_start_another();
    atomic_store(&serve_state.busy, worker->number);
    if (serve_watch(EPOLL_CTL_ADD) != 0)
        serve_watch(EPOLL_CTL_MOD);
}

/* Only one takes over from the one that is busy, or that one itself goes on. The one that leads waits for calls without those
 * that watch, who would be woken by each as well. */
static bool serve_takes_over(unsigned busy)
{
    if (busy == 0 || !atomic_compare_exchange_strong(&serve_state.busy, &busy, 0))
        return false;
    serve_watch(EPOLL_CTL_DEL);
    return true;
}

static void serve_relieve_another(void)
{
    struct epoll_event event;
    atomic_fetch_add(&serve_state.idle, 1);
    do
        epoll_wait(serve_state.watch, &event, 1, -1);
    while (!serve_takes_over(atomic_load(&serve_state.busy)));
    atomic_fetch_sub(&serve_state.idle, 1);
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

/* One at a time waits for calls, and answers at once what goes on in the kernel: the kernel would wake all that wait. False:
 * another one leads by now. */
static bool serve_one(struct serve_worker *worker)
{
    struct answer answer;
    bool leads = true;
    if (!serve_has_time())
        serve_make_way();
    if (!serve_receive(worker->call))
        pthread_exit(NULL);
    if (!answer_at_once(worker->call, &worker->arguments, &answer)) {
        serve_may_be_relieved(worker);
        answer = answer_find(serve_state.listener, worker->call, &worker->arguments);
        leads = serve_takes_over(worker->number); /* before its program makes the next call */
    }
    answer_give(serve_state.listener, worker->call->id, &answer);
    return leads;
}

/* A working directory and a umask of its own: the first one has those of the process, which nothing else uses. One that gets
 * none does no call, and stands among those that are idle: no other is started in its place, and calls wait for the end of
 * others. */
static void serve_stand_alone(const struct serve_worker *worker)
{
    if (worker->number == 1 || (SYS1(SYS_unshare, CLONE_FS) == 0 && SYS1(SYS_chdir, "/") == 0))
        return;
    atomic_fetch_add(&serve_state.idle, 1);
    pthread_exit(NULL);
}

static __attribute__((noreturn)) void *serve_work(void *of)
{
    struct serve_worker *worker = of;
    bool leads = worker->number == 1;
    serve_stand_alone(worker);
    for (;; leads = serve_one(worker))
        if (!leads)
            serve_relieve_another();
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
    if (worker != NULL) {
        worker->number = number + 1;
        worker->call = &serve_state.board->calls[number];
    }
    if (worker != NULL && serve_start(worker))
        return true;
    free(worker);
    atomic_fetch_sub(&serve_state.count, 1);
    return false;
}

bool serve_begin(int listener, struct serve_board *board)
{
    serve_state.listener = listener;
    serve_state.board = board;
    caller_start();
    SYS3(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS,
         SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP); /* a quicker change of hands */
    serve_read_limit();
    serve_state.watch = epoll_create1(EPOLL_CLOEXEC);
    return serve_state.watch >= 0 && serve_start_another();
}

enum serve_end serve_wait(void)
{
    while (!serve_has_ended(-1))
        continue;
    return SERVE_DONE;
}
