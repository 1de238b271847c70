/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "job_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"

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

static void job_state_become(int out, int error, char *const *words)
{
    launch_without_shim();
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    execvp(words[0], words);
    _exit(LAUNCH_NOT_FOUND);
}

/* What the command prints, both to standard output and standard error. Its status, or -1. */
static int job_state_ask(char *const *words, char *to, size_t size)
{
    int ends[2], status = -1;
    size_t length = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        job_state_become(ends[1], ends[1], words);
    close(ends[1]);
    for (ssize_t got = 1; child > 0 && got > 0 && length<size - 1; length += got> 0 ? (size_t)got : 0)
        got = read(ends[0], to + length, size - 1 - length);
    to[length] = '\0';
    close(ends[0]);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool job_state_has_ended(const char *scheduler, const char *job)
{
    char answer[1024], selection[160];
    char *const words[] = {"squeue", "--noheader", "--format=%T", selection, NULL};
    if (strcmp(scheduler, "slurm") != 0)
        return false;
    snprintf(selection, sizeof selection, "--jobs=%s", job);
    int status = job_state_ask(words, answer, sizeof answer);
    if (status == 0)
        return !job_state_is_alive(answer);
    return status > 0 && strstr(answer, "Invalid job id") != NULL;
}
