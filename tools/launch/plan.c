/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"
#include "launch/capture.h"
#include "launch/agent.h"
#include "launch/proof.h"
#include "command.h"

/* The line. */

static bool is_program(const char *word)
{
    const char *path = getenv("PATH");
    char at[PATH_MAX];
    if (strchr(word, '/'))
        return access(word, X_OK) == 0;
    for (size_t length; path && *path; path += length + (path[length] != '\0')) {
        length = strcspn(path, ":");
        int size = snprintf(at, sizeof at, "%.*s/%s", (int)length, path, word);
        if (size > 0 && (size_t)size < sizeof at && access(at, X_OK) == 0)
            return true;
    }
    return false;
}

static enum line_kind ask_version(char *launcher)
{
    char *const words[] = {launcher, "--version", NULL};
    char text[4096];
    int status = capture(words, text, sizeof text);
    enum line_kind kind = status == 0 ? line_kind_of_version(text) : LINE_UNTOLD;
    if (status == 127)
        complain("%s: command not found: check its spelling and PATH", launcher);
    else if (kind == LINE_UNTOLD)
        complain("`%s --version` names neither Open MPI nor MPICH or one of its kin: use one of them, or srun", launcher);
    return kind;
}

static int complain_line(const struct line *line, int error)
{
    if (error == -ENOEXEC)
        complain("no program is found behind the options of %s: give the whole launch line", line->words[0]);
    else if (error == -EOPNOTSUPP)
        complain("%s of %s takes programs from a file, where shunt cannot prove that it is in place: write them "
                 "in the launch line",
                 line->file, line->words[0]);
    else
        complain("more than %d programs in one launch line: use fewer", LINE_PARTS_MAX);
    return -1;
}

int plan_line(struct launch *launch, char **words)
{
    enum line_kind kind = line_kind(words);
    if (kind == LINE_UNTOLD && (kind = ask_version(words[0])) == LINE_UNTOLD)
        return -1;
    int error = line_parse(&launch->line, kind, words, is_program);
    if (error < 0)
        return complain_line(&launch->line, error);
    if (kind == LINE_SRUN && !launch->fakes && !launch->hosts && !getenv("SLURM_JOB_ID")) {
        complain("srun would get nodes that are not known yet: run shunt-launch in a job of sbatch or salloc");
        return -1;
    }
    return 0;
}

/* The plan: which nodes, which commands. */

static int find_nodes(struct launch *launch)
{
    if (launch->fakes)
        return nodes_pretend(&launch->nodes, launch->fakes);
    return nodes_find(&launch->nodes, launch->hosts, &launch->line);
}

/* A batch system's own launcher is told of nodes by that; others go by the user's line, or else by ssh. */
static enum crew_means means(const struct launch *launch)
{
    if (getenv("SLURM_JOB_ID") && !launch->hosts && is_program("srun"))
        return CREW_SRUN;
    if (launch->line.kind == LINE_OPENMPI)
        return CREW_OPENMPI;
    return launch->line.kind == LINE_HYDRA ? CREW_HYDRA : CREW_SSH;
}

static int find_own(struct launch *launch)
{
    ssize_t length = readlink("/proc/self/exe", launch->own, sizeof launch->own - 1);
    if (length > 0) {
        launch->own[length] = '\0';
        return 0;
    }
    complain("/proc/self/exe cannot be read: mount /proc");
    return -1;
}

static bool is_setting(const char *variable)
{
    return !strncmp(variable, "SHUNT_", 6) && strncmp(variable, "SHUNT_ROOT=", 11) != 0;
}

/* With all settings of this environment, since some means pass none on. */
static void compose_keeper(struct launch *launch)
{
    struct words *words = &launch->keeper;
    words_add(words, "env");
    for (char **variable = environ; *variable; variable++)
        if (is_setting(*variable))
            words_add(words, *variable);
    words_add(words, launch->own);
    words_add(words, KEEPER);
    for (size_t i = 0; i < launch->roots.count; i++) {
        words_add(words, "--root");
        words_add(words, launch->roots.paths[i]);
    }
    if (launch->placement) {
        words_add(words, "--placement");
        words_add(words, launch->placement);
    }
    if (launch->leaf_full) {
        words_add(words, "--leaf-full");
        words_add(words, launch->leaf_full);
    }
}

/* The user's own for the ranks, from the line or the environment, and the shim. */
static char *compose_preload(const struct line *line)
{
    char *own = line->preload ? strndup(line->preload, line->preload_length) : NULL;
    char *preload = launch_preload(own ? own : getenv("LD_PRELOAD"));
    free(own);
    if (!preload || !strchr(preload, ',') || line->kind != LINE_SRUN)
        return preload;
    complain("srun cannot pass on LD_PRELOAD='%s', which has a comma: install shunt elsewhere", preload);
    free(preload);
    return NULL;
}

#define VARIABLES_MAX 64

static size_t list_variables(const struct launch *launch, struct line_variable variables[VARIABLES_MAX])
{
    static char names[VARIABLES_MAX][64];
    size_t count = 0;
    variables[count++] = (struct line_variable){"LD_PRELOAD", launch->preload};
    variables[count++] = (struct line_variable){"SHUNT_ROOT", getenv("SHUNT_ROOT")};
    for (char **variable = environ; *variable && count < VARIABLES_MAX; variable++) {
        size_t length = strcspn(*variable, "=");
        if (!is_setting(*variable) || length >= sizeof names[count])
            continue;
        memcpy(names[count], *variable, length);
        variables[count] = (struct line_variable){names[count], *variable + length + 1};
        count++;
    }
    return count;
}

static void compose_job(struct launch *launch)
{
    struct line_variable variables[VARIABLES_MAX];
    struct words wrapper;
    words_init(&wrapper);
    words_add(&wrapper, launch->own);
    words_add(&wrapper, PROOF_VERB);
    if (launch->fakes) {
        words_add(&wrapper, "--fake-nodes");
        words_format(&wrapper, "%llu", (unsigned long long)launch->fakes);
    }
    words_add(&wrapper, "--");
    line_compose(&launch->line, &wrapper, variables, list_variables(launch, variables), &launch->job);
    words_finish(&wrapper);
}

static int set_root(const struct roots *roots)
{
    char *joined = roots_join(roots);
    int error = joined ? setenv("SHUNT_ROOT", joined, 1) : -1;
    free(joined);
    unsetenv("SHUNT_NODE"); /* each node has its own */
    return error;
}

int plan_make(struct launch *launch)
{
    if (find_own(launch) < 0 || set_root(&launch->roots) < 0 || find_nodes(launch) < 0)
        return -1;
    launch->preload = compose_preload(&launch->line);
    if (!launch->preload)
        return -1;
    launch_without_shim();
    compose_keeper(launch);
    compose_job(launch);
    if (launch->keeper.full || launch->job.full) {
        complain("the launch line is too long, or there is no memory for it");
        return -1;
    }
    const struct crew_plan plan = {means(launch), &launch->line, &launch->keeper, launch->fakes > 0};
    return crew_init(&launch->crew, &launch->nodes, &plan);
}

static void print_command(const struct words *words, const char *mark)
{
    char *quoted = words_quoted(words);
    printf("%s%s\n", quoted ? quoted : "", mark);
    free(quoted);
}

void plan_print(const struct launch *launch)
{
    printf("# %zu %s, from %s:", launch->nodes.count, launch->nodes.count == 1 ? "node" : "nodes", launch->nodes.source);
    for (size_t i = 0; i < launch->nodes.count; i++)
        printf(" %s", launch->nodes.names[i]);
    printf("\n");
    for (size_t i = 0; i < launch->crew.count; i++)
        print_command(&launch->crew.members[i].words, " &");
    if (launch->line.kind == LINE_PLAIN)
        printf("LD_PRELOAD='%s' ", launch->preload);
    printf("SHUNT_ROOT='%s' ", getenv("SHUNT_ROOT"));
    print_command(&launch->job, "");
    for (size_t i = 0; i < launch->roots.count && !launch->keep; i++)
        printf("shunt export %s\n", launch->roots.paths[i]);
}

void plan_finish(struct launch *launch)
{
    crew_finish(&launch->crew);
    words_finish(&launch->job);
    words_finish(&launch->keeper);
    nodes_finish(&launch->nodes);
    roots_finish(&launch->roots);
    free(launch->preload);
}
