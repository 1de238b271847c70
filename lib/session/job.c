/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Schedulers by the variables that they set. */
#include "session/job.h"

#include <string.h>

#include "base/text.h"

/* The first one whose variables are there: a scheduler that runs within a job of another one stands before that. JOB_ID alone
 * may be another program's, so that SGE's has to have SGE_TASK_ID next to it. */
static const struct {
    const char *scheduler, *id, *needs, *step;
} jobs[] = {
    {"flux", "FLUX_JOB_ID", NULL, NULL},
    {"slurm", "SLURM_JOB_ID", NULL, "SLURM_STEP_ID"},
    {"slurm", "SLURM_JOBID", NULL, "SLURM_STEPID"},
    {"pbs", "PBS_JOBID", NULL, NULL},
    {"lsf", "LSB_JOBID", NULL, "LSB_JOBINDEX"},
    {"cobalt", "COBALT_JOBID", NULL, NULL},
    {"oar", "OAR_JOB_ID", NULL, NULL},
    {"sge", "JOB_ID", "SGE_TASK_ID", "SGE_TASK_ID"},
};
#define JOBS (sizeof jobs / sizeof *jobs)

enum { JOB_ID, JOB_NEEDS, JOB_STEP, JOB_VARIABLES };

/* What was seen of each row's variables; NULL: nothing. */
struct job_values {
    const char *of[JOBS][JOB_VARIABLES];
};

/* No spaces, no control characters. */
static bool job_is_word(const char *value, size_t size)
{
    size_t length = 0;
    for (; value[length] != '\0'; length++)
        if (length + 1 >= size || value[length] <= ' ' || value[length] > '~')
            return false;
    return length > 0;
}

static const char *job_value_of(const char *variable, const char *name)
{
    size_t length = name != NULL ? strlen(name) : 0;
    return length > 0 && strncmp(variable, name, length) == 0 && variable[length] == '=' ? variable + length + 1 : NULL;
}

static void job_see(struct job_values *values, const char *variable)
{
    for (size_t i = 0; i < JOBS; i++) {
        const char *const names[JOB_VARIABLES] = {jobs[i].id, jobs[i].needs, jobs[i].step};
        for (int which = 0; which < JOB_VARIABLES; which++)
            if (values->of[i][which] == NULL)
                values->of[i][which] = job_value_of(variable, names[which]);
    }
}

static bool job_choose(struct session_job *job, const struct job_values *values)
{
    struct text t;
    for (size_t i = 0; i < JOBS; i++) {
        const char *const *value = values->of[i];
        if (value[JOB_ID] == NULL || !job_is_word(value[JOB_ID], sizeof job->id) ||
            (jobs[i].needs != NULL && value[JOB_NEEDS] == NULL))
            continue;
        job->scheduler = jobs[i].scheduler;
        text_init(&t, job->id, sizeof job->id);
        text_add(&t, value[JOB_ID]);
        text_init(&t, job->step, sizeof job->step);
        if (value[JOB_STEP] != NULL && job_is_word(value[JOB_STEP], sizeof job->step))
            text_add(&t, value[JOB_STEP]);
        return true;
    }
    return false;
}

bool session_job_read(struct session_job *job, char *const environment[])
{
    struct job_values values = {0};
    *job = (struct session_job){0};
    for (; environment != NULL && *environment != NULL; environment++)
        job_see(&values, *environment);
    return job_choose(job, &values);
}

bool session_job_parse(struct session_job *job, const char *environment, size_t length)
{
    struct job_values values = {0};
    *job = (struct session_job){0};
    for (const char *at = environment, *end; (end = memchr(at, '\0', length - (size_t)(at - environment))) != NULL;
         at = end + 1)
        job_see(&values, at);
    return job_choose(job, &values);
}

void session_job_describe(struct text *t, const char *written)
{
    static const char *const names[][2] = {{"slurm", "Slurm"}, {"pbs", "PBS"}, {"lsf", "LSF"}, {"flux", "Flux"}};
    const size_t scheduler = strcspn(written, ":");
    const char *cluster = written + scheduler + (written[scheduler] == ':');
    const char *id = cluster + strcspn(cluster, ":") + (strchr(cluster, ':') != NULL);
    const size_t length = strcspn(id, ":");
    const char *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i][0]) == scheduler && strncmp(written, names[i][0], scheduler) == 0)
            name = names[i][1];
    if (scheduler == 0 || length == 0 || id[length] != ':')
        return;
    text_bytes(t, name != NULL ? name : written, name != NULL ? strlen(name) : scheduler);
    text_add(t, " job ");
    text_bytes(t, id, length);
}
