/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serve.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "answer.h"
#include "kernel.h"

#define SERVE_STACK (256u << 10)

static struct {
    int listener;
    struct serve_board *board;
    atomic_uint idle, count;
} serve_state;

static void serve_start_another(void);

/* A call is on the board from the moment that it is taken: the kernel writes it there. */
static void *serve_work(void *of)
{
    struct seccomp_notif *call = of;
    struct arguments *arguments = malloc(sizeof *arguments);
    SYS1(SYS_unshare, CLONE_FS);
    while (arguments != NULL) {
        memset(call, 0, sizeof *call);
        atomic_fetch_add(&serve_state.idle, 1);
        const long code = SYS3(SYS_ioctl, serve_state.listener, SECCOMP_IOCTL_NOTIF_RECV, call);
        if (atomic_fetch_sub(&serve_state.idle, 1) == 1)
            serve_start_another();
        if (code == 0)
            answer_call(serve_state.listener, call, arguments);
        else if (code != -ENOENT && code != -EINTR)
            break;
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
    struct pollfd ended = {listener, 0, 0};
    serve_state.listener = listener;
    serve_state.board = board;
    caller_start();
    SYS3(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS,
         SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP); /* a quicker change of hands */
    serve_start_another();
    while (poll(&ended, 1, -1) < 0 || !(ended.revents & (POLLHUP | POLLERR | POLLNVAL)))
        continue;
}
