/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#define FUSE_USE_VERSION 35

#include "ends.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys.h"

#define AGAIN_NANOSECONDS 10000000

static const int ends_signals[] = {SIGHUP, SIGINT, SIGTERM};
static struct fuse_session *ends_session;
static timer_t ends_timer;

static void ends_set_mask(int how)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof ends_signals / sizeof *ends_signals; i++)
        sigaddset(&set, ends_signals[i]);
    pthread_sigmask(how, &set, NULL);
}

void ends_block(void)
{
    ends_set_mask(SIG_BLOCK);
}

static bool ends_is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void ends_pass_to(pid_t server)
{
    sigset_t pending;
    sigpending(&pending);
    for (size_t i = 0; i < sizeof ends_signals / sizeof *ends_signals; i++)
        if (sigismember(&pending, ends_signals[i]) == 1 && !ends_is_ignored(ends_signals[i])) {
            kill(server, SIGTERM);
            ends_set_mask(SIG_UNBLOCK);
        }
}

/* libfuse looks whether it is to end, and then waits: a signal that comes between the two does not end the wait. It comes again
 * until the wait is over. */
static void ends_told(int number)
{
    const int saved = errno;
    const struct itimerspec again = {.it_value.tv_nsec = AGAIN_NANOSECONDS, .it_interval.tv_nsec = AGAIN_NANOSECONDS};
    fuse_session_exit(ends_session);
    timer_settime(ends_timer, 0, &again, NULL);
    errno = saved;
    (void)number;
}

static void ends_wake(int number)
{
    (void)number;
}

int ends_take(struct fuse_session *session)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};
    const struct sigaction told = {.sa_handler = ends_told}, wake = {.sa_handler = ends_wake};
    event._sigev_un._tid = (pid_t)SYS0(SYS_gettid);
    ends_session = session;
    if (timer_create(CLOCK_MONOTONIC, &event, &ends_timer) < 0 || sigaction(SIGUSR2, &wake, NULL) < 0)
        return -errno;
    for (size_t i = 0; i < sizeof ends_signals / sizeof *ends_signals; i++)
        if (!ends_is_ignored(ends_signals[i]))
            sigaction(ends_signals[i], &told, NULL);
    ends_set_mask(SIG_UNBLOCK);
    return 0;
}

void ends_are_over(void)
{
    ends_set_mask(SIG_BLOCK);
    timer_delete(ends_timer);
}
