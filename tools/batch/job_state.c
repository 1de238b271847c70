/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "batch/job_state.h"

#include <stdio.h>
#include <string.h>

#include "programs/capture.h"

/* What a job's state is called while any of its processes may live. */
static bool job_state_is_alive(const char *state)
{
    static const char *const alive[] = {"PENDING",      "RUNNING",     "SUSPENDED",   "CONFIGURING", "COMPLETING",
                                        "RESIZING",     "SIGNALING",   "STAGE_OUT",   "STOPPED",     "REQUEUED",
                                        "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"};
    for (size_t i = 0; i < sizeof alive / sizeof *alive; i++)
        if (strncmp(state, alive[i], strlen(alive[i])) == 0)
            return true;
    return false;
}

bool job_state_has_ended(const char *scheduler, const char *job)
{
    char answer[1024], selection[160];
    char *const words[] = {"squeue", "--noheader", "--format=%T", selection, NULL};
    if (strcmp(scheduler, "slurm") != 0)
        return false;
    snprintf(selection, sizeof selection, "--jobs=%s", job);
    const int status = capture_all(words, answer, sizeof answer);
    if (status == 0)
        return !job_state_is_alive(answer);
    return status > 0 && strstr(answer, "Invalid job id") != NULL;
}
