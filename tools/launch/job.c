/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "programs/launch.h"

/* With a terminal the job stays in its foreground. Else it is a group of its own: what a batch system sends
 * to ours comes to it once, from us. */
static void job_become(const struct job *job, const struct signal_wait *watch, bool apart)
{
    if (apart)
        setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &watch->before, NULL);
    if (job->preload)
        setenv("LD_PRELOAD", job->preload, 1);
    _exit(launch_command((char **)job->words));
}

static void job_pass_on(pid_t job, bool apart, const struct signal_wait *watch, int signal)
{
    if (apart)
        kill(-job, signal);
    else if (!watch->by_terminal)
        kill(job, signal);
}

static int job_wait_for(pid_t job, struct agents *agents, struct signal_wait *watch, bool apart, struct job_end *end)
{
    int status = 0, signal = signal_wait_next(watch, NULL, 0, 0);
    watch->by_terminal = false; /* that one may have come before there was a job */
    watch->program = apart ? -job : job;
    for (; waitpid(job, &status, WNOHANG) == 0; signal = signal == 0 ? agents_wait(agents, watch, -1) : 0) {
        if (signal == 0)
            continue;
        end->killed = end->signal > 0;
        job_pass_on(job, apart, watch, end->killed ? SIGKILL : signal);
        if (!end->killed)
            end->signal = signal;
    }
    watch->program = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct job_end job_run(const struct job *job, struct agents *agents, struct signal_wait *watch)
{
    struct job_end end = {0};
    bool apart = !isatty(STDIN_FILENO);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        job_become(job, watch, apart);
    if (child < 0) {
        error_report("cannot start a process: %s (end other processes and run this again)", strerror(errno));
        end.status = STATUS_FAILED;
        return end;
    }
    if (apart)
        setpgid(child, child);
    end.status = job_wait_for(child, agents, watch, apart, &end);
    return end;
}
