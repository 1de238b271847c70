/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "ends.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "wake.h"

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

/* libfuse looks whether it is to end, and then waits: this signal, if it comes between the two, does not end the wait. */
static void ends_told(int number)
{
    const int saved = errno;
    fuse_session_exit(ends_session);
    wake_begin(ends_timer);
    errno = saved;
    (void)number;
}

int ends_take(struct fuse_session *session)
{
    const struct sigaction told = {.sa_handler = ends_told};
    const int error = wake_create(&ends_timer);
    if (error < 0)
        return error;
    ends_session = session;
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
