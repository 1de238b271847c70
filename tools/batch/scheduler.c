/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "batch/scheduler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch/slurm.h"
#include "config/config.h"
#include "programs/capture.h"
#include "session/job.h"

#define FIELDS 6
#define SAID_MAX 65536

/* No option of a command, and nothing that a list of them would take apart. */
static bool scheduler_is_plain(const char *word)
{
    return *word != '-' && strpbrk(word, " ,:/*'\"") == NULL;
}

int scheduler_parse(struct scheduler_job *job, const char *text)
{
    const char **const fields[FIELDS] = {&job->scheduler, &job->cluster, &job->id, &job->run, &job->step, &job->node};
    if (*text == '\0')
        return -ENOENT;
    if (strlen(text) >= sizeof job->text)
        return -EBADMSG;
    char *at = strcpy(job->text, text);
    for (size_t i = 0; i < FIELDS; i++) {
        char *colon = strchr(at, ':');
        if ((colon == NULL) != (i + 1 == FIELDS))
            return -EBADMSG;
        if (colon != NULL)
            *colon = '\0';
        *fields[i] = at;
        if (!scheduler_is_plain(at))
            return -EBADMSG;
        at = colon != NULL ? colon + 1 : at;
    }
    return *job->scheduler != '\0' && *job->id != '\0' ? 0 : -EBADMSG;
}

static const char *scheduler_value(char *const environment[], const char *name)
{
    const char *value = config_value(environment, name, "");
    return scheduler_is_plain(value) ? value : "";
}

/* Does Slurm end this process with the job? A shell on a log-in node has the job's variables, too. */
static bool scheduler_is_tracked(const char *cgroups, const char *id)
{
    char part[64];
    const int length = snprintf(part, sizeof part, "/job_%s", id);
    for (const char *at = cgroups; (at = strstr(at, part)) != NULL; at += length)
        if (at[length] == '/' || at[length] == '\n' || at[length] == '\0')
            return true;
    return false;
}

/* A heterogeneous job has a number for each of its groups: that of the one that ends with this process. */
static const char *scheduler_slurm(char *const environment[], const char *cgroups)
{
    const char *id = scheduler_value(environment, "SLURM_JOB_ID"), *of_group = id;
    char name[64];
    for (int i = 0; *of_group != '\0'; i++) {
        if (scheduler_is_tracked(cgroups, of_group))
            return of_group;
        snprintf(name, sizeof name, "SLURM_JOB_ID_HET_GROUP_%d", i);
        of_group = scheduler_value(environment, name);
    }
    return id;
}

static void scheduler_compose(char job[SESSION_JOB_MAX], const char *const fields[FIELDS])
{
    struct scheduler_job parsed;
    const int length =
        snprintf(job, SESSION_JOB_MAX, "%s:%s:%s:%s:%s:%s", fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]);
    if (length >= SESSION_JOB_MAX || scheduler_parse(&parsed, job) != 0)
        job[0] = '\0';
}

/* SHUNT_JOB came from another process of the job, by a way that the batch system may not know of, as ssh. */
static void scheduler_inherit(char *const environment[], char job[SESSION_JOB_MAX])
{
    struct scheduler_job parsed;
    job[0] = '\0';
    if (scheduler_parse(&parsed, config_value(environment, "SHUNT_JOB", "")) == 0)
        scheduler_compose(job, (const char *[]){parsed.scheduler, parsed.cluster, parsed.id, parsed.run, "", ""});
}

void scheduler_of(char *const environment[], const char *cgroups, char job[SESSION_JOB_MAX])
{
    const char *slurm = scheduler_slurm(environment, cgroups), *pbs = scheduler_value(environment, "PBS_JOBID"),
               *lsf = scheduler_value(environment, "LSB_JOBID"), *flux = scheduler_value(environment, "FLUX_JOB_ID"),
               *index = scheduler_value(environment, "LSB_JOBINDEX");
    char id[64];
    snprintf(id, sizeof id, *index != '\0' && strcmp(index, "0") != 0 ? "%s[%s]" : "%s", lsf, index);
    if (*slurm != '\0')
        scheduler_compose(
            job,
            (const char *[]){"slurm", scheduler_value(environment, "SLURM_CLUSTER_NAME"), slurm,
                             scheduler_value(environment, "SLURM_RESTART_COUNT"), scheduler_value(environment, "SLURM_STEP_ID"),
                             scheduler_is_tracked(cgroups, slurm) ? scheduler_value(environment, "SLURMD_NODENAME") : ""});
    else if (*pbs != '\0')
        scheduler_compose(job, (const char *[]){"pbs", "", pbs, "", "", ""});
    else if (*lsf != '\0')
        scheduler_compose(job, (const char *[]){"lsf", "", id, "", "", ""});
    else if (*flux != '\0')
        scheduler_compose(job, (const char *[]){"flux", "", flux, "", "", ""});
    else
        scheduler_inherit(environment, job);
}

const char *scheduler_own(void)
{
    static char job[SESSION_JOB_MAX];
    char cgroups[8192] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file != NULL) {
        cgroups[fread(cgroups, 1, sizeof cgroups - 1, file)] = '\0';
        fclose(file);
    }
    scheduler_of(environ, cgroups, job);
    if (*job != '\0')
        setenv("SHUNT_JOB", job, 1);
    else
        unsetenv("SHUNT_JOB");
    return job;
}

/* `job_state = R` of qstat -f. OpenPBS says of finished jobs that they are, with an error; Torque shows them with C. */
enum scheduler_word scheduler_of_pbs(const char *said, int status)
{
    const char *state = strstr(said, "job_state = ");
    if (state == NULL)
        return strstr(said, "Job has finished") != NULL || strstr(said, "Unknown Job Id") != NULL ? SCHEDULER_ENDED
                                                                                                  : SCHEDULER_UNTOLD;
    switch (state[strlen("job_state = ")]) {
    case 'R':
    case 'B':
        return status == 0 ? SCHEDULER_RUNS : SCHEDULER_UNTOLD;
    case 'S':
    case 'U':
        return SCHEDULER_SUSPENDED;
    case 'E':
        return SCHEDULER_ENDING;
    case 'F':
    case 'X':
    case 'C':
    case 'Q': /* it has been requeued */
    case 'H':
    case 'W':
        return SCHEDULER_ENDED;
    default:
        return SCHEDULER_UNTOLD;
    }
}

/* A table of words, each with what it means. */
static const struct {
    const char *word;
    enum scheduler_word means;
} lsf_states[] = {{"RUN", SCHEDULER_RUNS},        {"PROV", SCHEDULER_RUNS},       {"WAIT", SCHEDULER_RUNS},
                  {"USUSP", SCHEDULER_SUSPENDED}, {"SSUSP", SCHEDULER_SUSPENDED}, {"DONE", SCHEDULER_ENDED},
                  {"EXIT", SCHEDULER_ENDED},      {"PEND", SCHEDULER_ENDED},      {"PSUSP", SCHEDULER_ENDED}},
  flux_states[] = {{"RUN", SCHEDULER_RUNS},     {"CLEANUP", SCHEDULER_ENDING}, {"INACTIVE", SCHEDULER_ENDED},
                   {"DEPEND", SCHEDULER_ENDED}, {"PRIORITY", SCHEDULER_ENDED}, {"SCHED", SCHEDULER_ENDED}};

enum scheduler_word scheduler_of_lsf(const char *said, int status)
{
    const size_t length = strcspn(said, " \n");
    for (size_t i = 0; i < sizeof lsf_states / sizeof *lsf_states && status == 0; i++)
        if (strlen(lsf_states[i].word) == length && strncmp(said, lsf_states[i].word, length) == 0)
            return lsf_states[i].means;
    return strstr(said, "is not found") != NULL ? SCHEDULER_ENDED : SCHEDULER_UNTOLD;
}

enum scheduler_word scheduler_of_flux(const char *said, int status)
{
    const size_t length = strcspn(said, " \n");
    for (size_t i = 0; i < sizeof flux_states / sizeof *flux_states && status == 0; i++)
        if (strlen(flux_states[i].word) == length && strncmp(said, flux_states[i].word, length) == 0)
            return flux_states[i].means;
    return SCHEDULER_UNTOLD;
}

static enum scheduler_word scheduler_ask_other(const struct scheduler_job *job)
{
    static char said[SAID_MAX];
    char *const id = (char *)job->id;
    if (strcmp(job->scheduler, "pbs") == 0)
        return scheduler_of_pbs(said, capture_all((char *[]){"qstat", "-f", id, NULL}, said, sizeof said));
    if (strcmp(job->scheduler, "lsf") == 0)
        return scheduler_of_lsf(said, capture_all((char *[]){"bjobs", "-noheader", "-o", "stat", id, NULL}, said, sizeof said));
    if (strcmp(job->scheduler, "flux") == 0)
        return scheduler_of_flux(said, capture_all((char *[]){"flux", "jobs", "-no", "{state}", id, NULL}, said, sizeof said));
    return SCHEDULER_UNTOLD;
}

static bool scheduler_is_same(const struct scheduler_job *job, const char *text)
{
    struct scheduler_job other;
    return scheduler_parse(&other, text) == 0 && strcmp(job->scheduler, other.scheduler) == 0 &&
           strcmp(job->cluster, other.cluster) == 0 && strcmp(job->id, other.id) == 0 && strcmp(job->run, other.run) == 0;
}

static void scheduler_ask_one(const struct scheduler_job *job, const struct session *session, const bool *mine,
                              enum scheduler_word *words)
{
    if (strcmp(job->scheduler, "slurm") == 0) {
        slurm_ask(job, session, mine, words);
        return;
    }
    const enum scheduler_word word = scheduler_ask_other(job);
    for (size_t i = 0; i < session->count; i++)
        words[i] = mine[i] ? word : words[i];
}

void scheduler_ask(const struct session *session, enum scheduler_word *words)
{
    struct scheduler_job job;
    bool *mine = calloc(2 * session->count + 1, sizeof *mine), *told = mine + session->count;
    for (size_t i = 0; i < session->count; i++)
        words[i] = SCHEDULER_UNTOLD;
    for (size_t i = 0; mine != NULL && i < session->count; i++) {
        if (told[i] || scheduler_parse(&job, session->members[i].job) != 0)
            continue;
        for (size_t k = 0; k < session->count; k++) {
            mine[k] = scheduler_is_same(&job, session->members[k].job);
            told[k] |= mine[k];
        }
        scheduler_ask_one(&job, session, mine, words);
    }
    free(mine);
}

void scheduler_describe(const char *job, char *to, size_t size)
{
    struct scheduler_job parsed;
    struct text t;
    text_init(&t, to, size);
    if (scheduler_parse(&parsed, job) == 0)
        session_job_describe(&t, job);
}
