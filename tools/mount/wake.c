/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "wake.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/sys.h"

static void wake_handler(int number)
{
    (void)number;
}

int wake_init(void)
{
    const struct sigaction action = {.sa_handler = wake_handler};
    return sigaction(SIGUSR1, &action, NULL) < 0 ? -errno : 0;
}

int wake_create(timer_t *timer)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = (pid_t)SYS0(SYS_gettid);
    return timer_create(CLOCK_MONOTONIC, &event, timer) < 0 ? -errno : 0;
}

void wake_begin(timer_t timer)
{
    const struct itimerspec times = {.it_value.tv_nsec = 1, .it_interval.tv_nsec = 10000000};
    timer_settime(timer, 0, &times, NULL);
}
