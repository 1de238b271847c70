/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "cli/stopping.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
#define SIGNALS (sizeof signals / sizeof *signals)
#define SIGNALS_BUT_PIPE (SIGNALS - 1)

static volatile sig_atomic_t came;
static volatile sig_atomic_t told; /* the child that is waited for and was not told yet, or 0 */
static unsigned depth;
static size_t caught; /* so many of the signals are */
static uint64_t lease = UINT64_MAX;
static struct sigaction before[SIGNALS];

static void stopping_remember(int number)
{
    const pid_t child = (pid_t)told;
    came = number;
    told = 0;
    if (child > 0)
        kill(child, number);
}

static void stopping_block(sigset_t *mask)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, mask);
}

/* So many of the signals, but those that are caught. */
static void stopping_catch_first(size_t count)
{
    struct sigaction action = {.sa_handler = stopping_remember, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&action.sa_mask, signals[i]);
    for (; caught < count; caught++) {
        sigaction(signals[caught], &action, &before[caught]);
        /* nohup: a signal that was ignored stays ignored. */
        if (before[caught].sa_handler == SIG_IGN)
            sigaction(signals[caught], &before[caught], NULL);
    }
}

void stopping_catch(void)
{
    if (depth++ == 0)
        came = 0;
    stopping_catch_first(SIGNALS_BUT_PIPE);
}

void stopping_catch_pipe(void)
{
    stopping_catch();
    stopping_catch_first(SIGNALS);
}

void stopping_set_lease(uint64_t until)
{
    __atomic_store_n(&lease, until, __ATOMIC_RELEASE);
}

int stopping(void)
{
    if (came == 0 && clock_boot() >= __atomic_load_n(&lease, __ATOMIC_ACQUIRE))
        came = STOPPING_LEASE;
    return came;
}

int stopping_take(void)
{
    const int number = came;
    came = 0;
    return number;
}

static void stopping_put_back(void)
{
    while (caught > 0) {
        caught--;
        sigaction(signals[caught], &before[caught], NULL);
    }
}

int stopping_release(void)
{
    if (depth == 0 || --depth > 0)
        return came;
    stopping_put_back();
    return stopping_take();
}

pid_t stopping_fork(void)
{
    sigset_t mask, none;
    fflush(NULL);
    stopping_block(&mask);
    const pid_t child = fork();
    if (child == 0) {
        if (depth > 0)
            stopping_put_back();
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        return 0;
    }
    const int error = errno;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    errno = error;
    return child;
}

/* Its number may be another's once it has been waited for, but not before. */
int stopping_wait(pid_t child, int *status)
{
    sigset_t mask;
    siginfo_t info;
    stopping_block(&mask);
    told = came != 0 ? 0 : child;
    if (came != 0)
        kill(child, came);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    stopping_block(&mask);
    told = 0;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    while (waitpid(child, status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}
