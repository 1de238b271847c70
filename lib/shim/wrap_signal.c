/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Handlers of signals are handed on as they are. That there is one is noted before: from then on signals are held back while a
 * name is claimed (interrupts.h). Those of the signals that the thread's own instructions raise never are. */

#include <signal.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "shim/interrupts.h"
#include "shim/wrap.h"
#include "shim/wrap_signal.h"

/* Not in the headers of glibc 2.36, or only without _GNU_SOURCE. */
int __sigaction(int number, const struct sigaction *action, struct sigaction *before);
__sighandler_t __sysv_signal(int number, __sighandler_t handler);
__sighandler_t bsd_signal(int number, __sighandler_t handler);

/* A program that has the shim without its wrappers (tools, tests) knows of no handler. */
__attribute__((constructor)) static void wrap_signal_start(void)
{
    interrupts_start();
}

static void wrap_signal_note(int number, __sighandler_t handler)
{
    const bool is_own = number > 0 && number <= 64 && (SYS_OWN_SIGNALS >> (number - 1) & 1);
    if (handler != SIG_DFL && handler != SIG_IGN && !is_own)
        interrupts_will_be_handled();
}

static void wrap_signal_note_action(int number, const struct sigaction *action)
{
    if (action != NULL)
        wrap_signal_note(number, action->sa_handler);
}

WRAPPER int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    wrap_signal_note_action(number, action);
    return REAL(sigaction)(number, action, before);
}

WRAPPER int __sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    wrap_signal_note_action(number, action);
    return REAL(__sigaction)(number, action, before);
}

WRAPPER __sighandler_t signal(int number, __sighandler_t handler)
{
    wrap_signal_note(number, handler);
    return REAL(signal)(number, handler);
}

WRAPPER __sighandler_t bsd_signal(int number, __sighandler_t handler)
{
    wrap_signal_note(number, handler);
    return REAL(bsd_signal)(number, handler);
}

WRAPPER __sighandler_t ssignal(int number, __sighandler_t handler)
{
    wrap_signal_note(number, handler);
    return REAL(ssignal)(number, handler);
}

WRAPPER __sighandler_t sysv_signal(int number, __sighandler_t handler)
{
    wrap_signal_note(number, handler);
    return REAL(sysv_signal)(number, handler);
}

WRAPPER __sighandler_t __sysv_signal(int number, __sighandler_t handler)
{
    wrap_signal_note(number, handler);
    return REAL(__sysv_signal)(number, handler);
}

WRAPPER __sighandler_t sigset(int number, __sighandler_t handler)
{
    wrap_signal_note(number, handler);
    return REAL(sigset)(number, handler);
}

long wrap_signal_call(long number, const long a[6], bool *known)
{
    if (number == SYS_rt_sigaction && a[1] != 0)
        interrupts_will_be_handled();
    *known = false;
    return 0;
}
