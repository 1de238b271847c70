/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Signals that are for programs: by them users and batch systems say something to a job (that its time is nearly over, that it
 * is to write a checkpoint), often to all of its processes. By default they end a process, but for SIGURG. The processes that
 * serve a job outlast them; one that has started the job's command passes them on. */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#define PROGRAM_SIGNALS 5
static const int program_signals[PROGRAM_SIGNALS] = {SIGUSR1, SIGUSR2, SIGALRM, SIGURG, SIGXCPU};

static inline bool program_signals_has(int number)
{
    for (size_t i = 0; i < PROGRAM_SIGNALS; i++)
        if (program_signals[i] == number)
            return true;
    return false;
}

/* SIG_IGN is what an executed program has, too; a handler is not. One that is ignored already stays so. */
static inline void program_signals_handle(void (*handler)(int))
{
    struct sigaction now, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < PROGRAM_SIGNALS; i++)
        if (sigaction(program_signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(program_signals[i], &action, NULL);
}

static inline void program_signals_do_nothing(int number)
{
}

/* For a process that executes others, which have these signals as they were. */
static inline void program_signals_outlast(void)
{
    program_signals_handle(program_signals_do_nothing);
}

static inline void program_signals_ignore(void)
{
    program_signals_handle(SIG_IGN);
}
