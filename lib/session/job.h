/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The batch job that a process belongs to, as its environment says. Pure; async-signal-safe. */

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

#define SESSION_JOB_ID_MAX 129 /* with the zero */

struct session_job {
    const char *scheduler;       /* slurm, pbs, lsf, flux, cobalt, oar, sge; NULL: none is known */
    char id[SESSION_JOB_ID_MAX]; /* as the scheduler's own commands take it; empty: in no job */
    char step[24];               /* slurm: the step; lsf, sge: the number in an array; empty: none */
};

/* False: in no job, and *job is empty. A value that could not be read back from a line of text counts as none. */
bool session_job_read(struct session_job *, char *const environment[]);
/* The same from /proc/PID/environ, or a copy of it: strings, each with a zero at its end. Of what is longer than the caller
 * read, the end is not looked at. */
bool session_job_parse(struct session_job *, const char *environment, size_t length);

/* `Slurm job 12` of a job as it is written down (SESSION.md, SCHEDULER:CLUSTER:ID:RUN:STEP:NODE); nothing of another text. */
void session_job_describe(struct text *, const char *written);
