/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a thread that leaves signals to main blocks: all but those of its own faults, which would end the process without the
 * report that main's handler writes. */

#include <signal.h>

static inline void faults_excepted(sigset_t *blocked)
{
    sigfillset(blocked);
    sigdelset(blocked, SIGSEGV);
    sigdelset(blocked, SIGBUS);
    sigdelset(blocked, SIGFPE);
    sigdelset(blocked, SIGILL);
}
