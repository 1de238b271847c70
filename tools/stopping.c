/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "stopping.h"

#include <signal.h>
#include <stddef.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNALS (sizeof signals / sizeof *signals)

static volatile sig_atomic_t came;
static struct sigaction before[SIGNALS];

static void stopping_remember(int number)
{
    came = number;
}

void stopping_catch(void)
{
    struct sigaction action = {.sa_handler = stopping_remember, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    came = 0;
    for (size_t i = 0; i < SIGNALS; i++) {
        sigaction(signals[i], &action, &before[i]);
        /* nohup: a signal that was ignored stays ignored. */
        if (before[i].sa_handler == SIG_IGN)
            sigaction(signals[i], &before[i], NULL);
    }
}

int stopping(void)
{
    return came;
}

void stopping_release(void)
{
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
    came = 0;
}
