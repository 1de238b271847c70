/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The user's command: its one process, which may be a launcher of many. */

#include "launch/agents.h"

struct job {
    char *const *words;
    const char *preload; /* LD_PRELOAD for the command itself; NULL: as it is */
};

struct job_end {
    int status;  /* the exit status, or 128 and the signal that killed it */
    int signal;  /* what came for us meanwhile, the first of them; 0 */
    bool killed; /* a second one came */
};

/* Runs it to its end. Signals are passed on to it, the second is SIGKILL. */
struct job_end job_run(const struct job *, struct agents *, struct signal_wait *);
