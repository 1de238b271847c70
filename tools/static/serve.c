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

#include "answer.h"
#include "kernel.h"

#define SERVE_STACK (256u << 10)

static struct {
    int listener;
    struct serve_board *board;
    sem_t lead;
    atomic_uint idle, count;
} serve_state;

static void serve_start_another(void);

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

/* One at a time waits for calls, and answers at once what goes on in the kernel: the kernel would wake all that wait. */
static void *serve_work(void *of)
{
    struct seccomp_notif *call = of;
    struct arguments *arguments = malloc(sizeof *arguments);
    bool leads = false;
    SYS1(SYS_unshare, CLONE_FS);
    while (arguments != NULL) {
        if (!leads) {
            atomic_fetch_add(&serve_state.idle, 1);
            while (sem_wait(&serve_state.lead) != 0)
                continue;
            atomic_fetch_sub(&serve_state.idle, 1);
        }
        if (!serve_receive(call))
            break;
        leads = answer_at_once(serve_state.listener, call, arguments);
        if (!leads) {
            serve_hand_on();
            answer_here(serve_state.listener, call, arguments);
        }
    }
    free(arguments);
    return NULL;
}

static void serve_start_another(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    const unsigned number = atomic_fetch_add(&serve_state.count, 1);
    if (number >= SERVE_WORKERS) {
        atomic_fetch_sub(&serve_state.count, 1);
        return; /* the others will be free: nothing here waits for what the program does */
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SERVE_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_create(&thread, &attributes, serve_work, &serve_state.board->calls[number]);
    pthread_attr_destroy(&attributes);
}

void serve_all(int listener, struct serve_board *board)
{
    serve_state.listener = listener;
    serve_state.board = board;
    sem_init(&serve_state.lead, 0, 1);
    caller_start();
    SYS3(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS,
         SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP); /* a quicker change of hands */
    serve_start_another();
    while (!serve_has_ended(-1))
        continue;
}
