/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Batch systems: of which job a process is a part, and whether a job has ended. A job is a text of six fields,
 * SCHEDULER:CLUSTER:ID:RUN:STEP:NODE (lib/session/SESSION.md). */

#include <stdbool.h>

#include "session/session.h"

struct scheduler_job {
    char text[SESSION_JOB_MAX];
    const char *scheduler, *cluster, *id, *run, *step, *node; /* in text; empty: not known */
};

enum scheduler_word {
    SCHEDULER_UNTOLD = 0, /* there is no job, or no answer */
    SCHEDULER_RUNS,
    SCHEDULER_SUSPENDED, /* its processes stand still, and may go on */
    SCHEDULER_ENDING,    /* its processes are being killed */
    SCHEDULER_ENDED,     /* a process of it may have escaped, or be on a node that is not heard */
    SCHEDULER_GONE,      /* and so have all of its processes */
};

/* Pure. 0; -ENOENT: it is empty; -EBADMSG. */
int scheduler_parse(struct scheduler_job *, const char *text);
/* The job of the process that has this environment; empty: of none. `cgroups` is its /proc/PID/cgroup: only a process that
 * Slurm tracks ends with its job. Pure. */
void scheduler_of(char *const environment[], const char *cgroups, char job[SESSION_JOB_MAX]);
/* That of this process, which goes into its environment as SHUNT_JOB, for a daemon that it starts. */
const char *scheduler_own(void);

/* Asks for the job of each member, for each job once. `words` has room for all. */
void scheduler_ask(const struct session *, enum scheduler_word *words);

/* What a command of the batch system said of a job, with its exit status. Pure. */
enum scheduler_word scheduler_of_pbs(const char *said, int status);
enum scheduler_word scheduler_of_lsf(const char *said, int status);
enum scheduler_word scheduler_of_flux(const char *said, int status);

/* `Slurm job 12`; empty without a job. */
void scheduler_describe(const char *job, char *to, size_t size);
