/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "batch/slurm.h"

#include <stdlib.h>
#include <string.h>

#include "programs/capture.h"

#define TEXT_MAX (4u << 20)

/* The line that begins with KEY=VALUE and a space, or NULL. */
static const char *slurm_line_of(const char *said, const char *key, const char *value)
{
    const size_t first = strlen(key), second = strlen(value);
    for (const char *line = said; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, first) == 0 && strncmp(line + first, value, second) == 0 && line[first + second] == ' ')
            return line;
    }
    return NULL;
}

/* What follows ` KEY=` in a line, up to the next space; *length is 0 without it. */
static const char *slurm_value_of(const char *line, const char *key, size_t *length)
{
    const char *end = line + strcspn(line, "\n"), *at = strstr(line, key);
    *length = 0;
    if (at == NULL || at >= end)
        return line;
    at += strlen(key);
    *length = strcspn(at, " \n");
    return at;
}

/* A word of a list that ends with NULL. */
static bool slurm_is_one_of(const char *word, size_t length, const char *const list[])
{
    for (; *list != NULL; list++)
        if (strlen(*list) == length && memcmp(word, *list, length) == 0)
            return true;
    return false;
}

enum scheduler_word slurm_of_job(const char *said, int status, const char *id, unsigned long run)
{
    static const char *const running[] = {"RUNNING", "CONFIGURING", "RESIZING", "SIGNALING", "STAGE_OUT", NULL};
    static const char *const suspended[] = {"SUSPENDED", "STOPPED", NULL};
    /* A job that waits again has been requeued. */
    static const char *const ended[] = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "COMPLETED",     "CANCELLED",
                                        "FAILED",  "TIMEOUT",  "PREEMPTED",    "DEADLINE",     "OUT_OF_MEMORY", NULL};
    static const char *const unsure[] = {"NODE_FAIL", "BOOT_FAIL", "REVOKED", "REQUEUE_FED", NULL};
    size_t length, digits;
    const char *line = slurm_line_of(said, "JobId=", id);
    if (line == NULL) /* what Slurm has forgotten ended long ago */
        return strstr(said, "Invalid job id specified") != NULL ? SCHEDULER_GONE : SCHEDULER_UNTOLD;
    const char *state = slurm_value_of(line, " JobState=", &length), *restarts = slurm_value_of(line, " Restarts=", &digits);
    if (status != 0 || length == 0 || digits == 0)
        return SCHEDULER_UNTOLD;
    if (slurm_is_one_of(state, length, (const char *const[]){"COMPLETING", NULL}))
        return strtoul(restarts, NULL, 10) == run ? SCHEDULER_ENDING : SCHEDULER_GONE;
    if (strtoul(restarts, NULL, 10) > run || slurm_is_one_of(state, length, ended))
        return SCHEDULER_GONE;
    if (slurm_is_one_of(state, length, running))
        return SCHEDULER_RUNS;
    if (slurm_is_one_of(state, length, suspended))
        return SCHEDULER_SUSPENDED;
    return slurm_is_one_of(state, length, unsure) ? SCHEDULER_ENDED : SCHEDULER_UNTOLD;
}

/* Is the setting of that name that value? `KEY   = VALUE`. */
static bool slurm_is_set(const char *said, const char *key, const char *value)
{
    for (const char *line = said; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *at = line + strlen(key);
        at += strspn(at, " ");
        if (*at++ != '=')
            continue;
        at += strspn(at, " ");
        return strcspn(at, " \n") == strlen(value) && strncmp(at, value, strlen(value)) == 0;
    }
    return false;
}

bool slurm_is_cluster(const char *said, const char *cluster)
{
    return *cluster != '\0' && slurm_is_set(said, "ClusterName", cluster);
}

bool slurm_tracks_all(const char *said)
{
    return slurm_is_set(said, "ProctrackType", "proctrack/cgroup");
}

/* A star: it does not respond. DRAIN may be because a process could not be killed. */
bool slurm_node_is_well(const char *said, const char *node)
{
    static const char *const well[] = {"IDLE", "ALLOCATED", "MIXED", "COMPLETING", "PLANNED", "RESERVED", "DYNAMIC_NORM", NULL};
    const char *line = *node != '\0' ? slurm_line_of(said, "NodeName=", node) : NULL;
    size_t length = 0, word;
    const char *state = line != NULL ? slurm_value_of(line, " State=", &length) : NULL;
    if (length == 0)
        return false;
    for (const char *end = state + length; state < end; state += word + 1) {
        word = strcspn(state, "+ \n");
        if (!slurm_is_one_of(state, word, well))
            return false;
    }
    return true;
}

/* The nodes of the members of that job, separated by commas; NULL if none is known, or there is no memory. */
static char *slurm_nodes_of(const struct session *session, const bool *mine)
{
    struct scheduler_job job;
    char *list = malloc(session->count * SESSION_JOB_MAX + 1), *at = list;
    for (size_t i = 0; list != NULL && i < session->count; i++)
        if (mine[i] && scheduler_parse(&job, session->members[i].job) == 0 && *job.node != '\0')
            at = stpcpy(stpcpy(at, at > list ? "," : ""), job.node);
    if (at == list) {
        free(list);
        return NULL;
    }
    return list;
}

/* Processes of a job that has ended have ended on nodes that are well. */
static void slurm_look_at_nodes(const struct session *session, const bool *mine, char *text, enum scheduler_word *words)
{
    struct scheduler_job job;
    char *list = slurm_nodes_of(session, mine);
    const bool asked =
        list != NULL && capture_all((char *[]){"scontrol", "-o", "show", "node", list, NULL}, text, TEXT_MAX) == 0;
    for (size_t i = 0; i < session->count; i++)
        if (mine[i]) {
            const bool is_well =
                asked && scheduler_parse(&job, session->members[i].job) == 0 && slurm_node_is_well(text, job.node);
            words[i] = is_well ? SCHEDULER_GONE : SCHEDULER_ENDED;
        }
    free(list);
}

void slurm_ask(const struct scheduler_job *job, const struct session *session, const bool *mine, enum scheduler_word *words)
{
    enum scheduler_word word = SCHEDULER_UNTOLD;
    bool tracks = false;
    char *text = malloc(TEXT_MAX);
    if (text != NULL && capture_all((char *[]){"scontrol", "show", "config", NULL}, text, TEXT_MAX) == 0 &&
        slurm_is_cluster(text, job->cluster)) {
        tracks = slurm_tracks_all(text);
        const int status = capture_all((char *[]){"scontrol", "-o", "show", "job", (char *)job->id, NULL}, text, TEXT_MAX);
        word = slurm_of_job(text, status, job->id, strtoul(job->run, NULL, 10));
    }
    for (size_t i = 0; i < session->count; i++)
        if (mine[i])
            words[i] = word == SCHEDULER_GONE && !tracks ? SCHEDULER_ENDED : word;
    if (word == SCHEDULER_GONE && tracks)
        slurm_look_at_nodes(session, mine, text, words);
    free(text);
}
