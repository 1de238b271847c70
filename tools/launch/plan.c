/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "batch/scheduler.h"
#include "cli/command.h"
#include "launch/agent.h"
#include "launch/proof.h"
#include "programs/capture.h"
#include "programs/launch.h"

/* The line. */

/* A directory may be searched by the same permission. */
static bool plan_can_be_executed(const char *path)
{
    struct stat stat_of;
    return stat(path, &stat_of) == 0 && S_ISREG(stat_of.st_mode) && access(path, X_OK) == 0;
}

/* As execvp(3), for which a part of PATH that is empty is the working directory. */
static bool plan_find_program(const char *word, char at[PATH_MAX])
{
    const char *path = getenv("PATH") ? getenv("PATH") : "/bin:/usr/bin";
    if (strchr(word, '/'))
        return snprintf(at, PATH_MAX, "%s", word) < PATH_MAX && plan_can_be_executed(at);
    for (bool is_more = true; is_more;) {
        const size_t length = strcspn(path, ":");
        const int size = snprintf(at, PATH_MAX, "%.*s%s%s", (int)length, path, length > 0 ? "/" : "./", word);
        if (size > 0 && size < PATH_MAX && plan_can_be_executed(at))
            return true;
        is_more = path[length] == ':';
        path += length + 1;
    }
    return false;
}

static bool plan_is_program(const char *word)
{
    char at[PATH_MAX];
    return plan_find_program(word, at);
}

static enum line_kind plan_ask_version(char *launcher)
{
    char *const words[] = {launcher, "--version", NULL};
    char text[4096];
    int status = capture(words, text, sizeof text);
    enum line_kind kind = status == 0 ? line_kind_of_version(text) : LINE_UNTOLD;
    if (status == 127)
        error_report("%s: command not found (check its spelling and PATH)", launcher);
    else if (kind == LINE_UNTOLD)
        error_report("%s: '--version' names neither Open MPI nor MPICH or a relative of it (use one of them, or srun)",
                     launcher);
    return kind;
}

static int plan_complain_line(const struct line *line, int error)
{
    if (error == -ENOEXEC)
        error_report("%s: no program is found after its options (give the whole launch line)", line->words[0]);
    else if (error == -EOPNOTSUPP)
        error_report("%s: %s takes programs from a file, which shunt cannot check (write them in the launch line)",
                     line->words[0], line->file);
    else
        error_report("launch line: more than %d programs (use fewer)", LINE_PARTS_MAX);
    return -1;
}

int plan_line(struct launch *launch, char **words)
{
    const size_t before = line_launcher_at(words);
    enum line_kind kind = line_kind(words + before);
    if (kind == LINE_UNTOLD && (kind = plan_ask_version(words[before])) == LINE_UNTOLD)
        return -1;
    int error = line_parse(&launch->line, kind, words + before, plan_is_program);
    if (error < 0)
        return plan_complain_line(&launch->line, error);
    launch->line.before = words;
    launch->line.before_count = before;
    launch->line.exported = getenv("SLURM_EXPORT_ENV");
    if (kind == LINE_SRUN && !launch->fakes && !launch->hosts && !getenv("SLURM_JOB_ID")) {
        error_report("srun: the nodes are not known before it starts (run shunt-launch in a job of sbatch or salloc)");
        return -1;
    }
    return 0;
}

/* The plan: which nodes, which commands. */

static int plan_find_nodes(struct launch *launch)
{
    if (launch->fakes)
        return nodes_pretend(&launch->nodes, launch->fakes);
    return nodes_find(&launch->nodes, launch->hosts, &launch->line);
}

/* A batch system's own launcher is told of nodes by that; others go by the user's line, or else by ssh. */
static bool plan_has_srun(const char *hosts)
{
    return getenv("SLURM_JOB_ID") && !hosts && plan_is_program("srun");
}

enum agents_means plan_helpers_means(const char *hosts)
{
    return plan_has_srun(hosts) ? AGENTS_SRUN : AGENTS_SSH;
}

static enum agents_means plan_means(const struct launch *launch)
{
    if (plan_has_srun(launch->hosts))
        return AGENTS_SRUN;
    if (launch->line.kind == LINE_OPENMPI)
        return AGENTS_OPENMPI;
    return launch->line.kind == LINE_HYDRA ? AGENTS_HYDRA : AGENTS_SSH;
}

static int plan_find_own(struct launch *launch)
{
    ssize_t length = readlink("/proc/self/exe", launch->own, sizeof launch->own - 1);
    if (length > 0) {
        launch->own[length] = '\0';
        return 0;
    }
    error_report("/proc/self/exe: cannot be read (mount /proc)");
    return -1;
}

static bool plan_is_setting(const char *variable)
{
    return !strncmp(variable, "SHUNT_", 6) && strncmp(variable, "SHUNT_ROOT=", 11) != 0 &&
           strncmp(variable, "SHUNT_ROOT_ID=", 14) != 0;
}

void plan_add_environment(enum agents_means means, struct arguments *to)
{
    arguments_add(to, "env");
    if (means != AGENTS_SRUN && getenv("SLURMD_NODENAME")) { /* other means take this node's along */
        arguments_add(to, "-u");
        arguments_add(to, "SLURMD_NODENAME");
    }
    for (char **variable = environ; *variable; variable++)
        if (plan_is_setting(*variable) && strncmp(*variable, "SHUNT_NODE=", 11) != 0) /* that is the ranks' */
            arguments_add(to, *variable);
}

static void plan_compose_agent(const struct launch *launch, struct arguments *words)
{
    plan_add_environment(plan_means(launch), words);
    arguments_add(words, launch->own);
    arguments_add(words, AGENT);
    for (size_t i = 0; i < launch->roots.count; i++) {
        arguments_add(words, "--root");
        arguments_add(words, launch->roots.paths[i]);
    }
    if (launch->placement) {
        arguments_add(words, "--placement");
        arguments_add(words, launch->placement);
    }
    if (launch->leaf_full) {
        arguments_add(words, "--leaf-full");
        arguments_add(words, launch->leaf_full);
    }
    if (launch->quiet != 0)
        arguments_format(words, "--" AGENT_QUIET "=%" PRIu64, (uint64_t)(launch->quiet / CLOCK_SECOND));
}

/* The session around this process, as of `shunt run`, has a daemon on this host; on the others its roots are to be seen, too.
 */
static void plan_compose_agents(struct launch *launch)
{
    plan_compose_agent(launch, &launch->agent_here);
    plan_compose_agent(launch, &launch->agent);
    for (size_t i = launch->roots.count; i < launch->served.count; i++) {
        arguments_add(&launch->agent, "--" AGENT_OUTER);
        arguments_add(&launch->agent, launch->served.paths[i]);
    }
}

/* The user's own for the ranks, from the line or the environment, and the shim. */
static char *plan_compose_preload(const struct line *line)
{
    char *own = line->preload ? strndup(line->preload, line->preload_length) : NULL;
    char *preload = launch_preload(own ? own : getenv("LD_PRELOAD"));
    free(own);
    if (!preload || !strchr(preload, ',') || line->kind != LINE_SRUN)
        return preload;
    error_report("srun: cannot pass on LD_PRELOAD '%s', which has a comma (install shunt elsewhere)", preload);
    free(preload);
    return NULL;
}

/* What is handed to all ranks; the names are owned. */
struct plan_variables {
    struct line_variable *at;
    size_t count;
};

static void plan_variables_finish(struct plan_variables *variables)
{
    for (size_t i = 0; i < variables->count; i++)
        free((char *)variables->at[i].name);
    free(variables->at);
}

/* There is room for it. Without memory its name is NULL. */
static void plan_variables_add(struct plan_variables *variables, const char *name, size_t length, const char *value)
{
    variables->at[variables->count++] = (struct line_variable){strndup(name, length), value};
}

static bool plan_variables_are_whole(const struct plan_variables *variables)
{
    bool are_whole = variables->at != NULL;
    for (size_t i = 0; i < variables->count; i++)
        are_whole &= variables->at[i].name != NULL;
    return are_whole;
}

/* False: there is not enough memory; plan_variables_finish is called in any case. */
static bool plan_variables_init(struct plan_variables *variables, const struct launch *launch)
{
    size_t most = 2;
    for (char **variable = environ; *variable; variable++)
        most += plan_is_setting(*variable);
    *variables = (struct plan_variables){.at = calloc(most, sizeof *variables->at)};
    if (variables->at == NULL)
        return false;
    plan_variables_add(variables, "LD_PRELOAD", sizeof "LD_PRELOAD" - 1, launch->preload);
    plan_variables_add(variables, "SHUNT_ROOT", sizeof "SHUNT_ROOT" - 1, getenv("SHUNT_ROOT"));
    for (char **variable = environ; *variable; variable++) {
        const size_t length = strcspn(*variable, "=");
        if (plan_is_setting(*variable) && (*variable)[length] == '=')
            plan_variables_add(variables, *variable, length, *variable + length + 1);
    }
    return plan_variables_are_whole(variables);
}

/* A script's own steps may take no variables along: sbatch --export=NONE says so to all of them. */
static void plan_export_to_steps(struct launch *launch, const struct line_variable *variables, size_t count)
{
    static char list[LINE_EXPORT_MAX];
    if (launch->line.kind != LINE_PLAIN || !launch->line.exported || !strcmp(launch->line.exported, "ALL"))
        return;
    launch->job.full |= !line_export(launch->line.exported, variables, count, list);
    setenv("SLURM_EXPORT_ENV", list, 1);
}

static void plan_compose_line(struct launch *launch, const struct plan_variables *variables)
{
    struct arguments wrapper;
    arguments_init(&wrapper);
    arguments_add(&wrapper, launch->own);
    arguments_add(&wrapper, PROOF_COMMAND);
    if (launch->fakes) {
        arguments_add(&wrapper, "--fake-nodes");
        arguments_format(&wrapper, "%llu", (unsigned long long)launch->fakes);
    }
    arguments_add(&wrapper, "--");
    line_compose(&launch->line, &wrapper, variables->at, variables->count, &launch->job);
    plan_export_to_steps(launch, variables->at, variables->count);
    arguments_finish(&wrapper);
}

static void plan_compose_job(struct launch *launch)
{
    struct plan_variables variables;
    if (plan_variables_init(&variables, launch))
        plan_compose_line(launch, &variables);
    else
        launch->job.full = true;
    plan_variables_finish(&variables);
}

/* Each node has its own name; programs that ranks spawn are on the first one of pretended nodes. */
static int plan_set_environment(struct launch *launch)
{
    char node[32];
    if (launch_roots_for(&launch->roots, NULL, &launch->served) < 0)
        return -1;
    char *joined = roots_join(&launch->served);
    int error = joined ? setenv("SHUNT_ROOT", joined, 1) : -1;
    free(joined);
    snprintf(node, sizeof node, NODES_FAKE, (size_t)0);
    if (error == 0 && launch->fakes)
        return setenv("SHUNT_NODE", node, 1);
    unsetenv("SHUNT_NODE");
    return error;
}

/* By its first bytes, or a shell that is to read one. */
static bool plan_is_script(const char *word)
{
    static const char *const shells[] = {"sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh"};
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
    char path[PATH_MAX], begin[2] = "";
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (!strcmp(name, shells[i]))
            return true;
    FILE *file = plan_find_program(word, path) ? fopen(path, "re") : NULL;
    bool is_script = file && fread(begin, 1, sizeof begin, file) == sizeof begin && !memcmp(begin, "#!", 2);
    if (file)
        fclose(file);
    return is_script;
}

/* A script may run its arguments, or do something else with them. On one node all that it starts is under shunt anyway. */
static int plan_check_plain(const struct launch *launch)
{
    const struct line *line = &launch->line;
    if (line->kind != LINE_PLAIN || launch->nodes.count < 2 || launch->fakes || !plan_is_script(line->words[0]))
        return 0;
    for (size_t i = 1; i < line->count; i++)
        if (line_kind(line->words + i) != LINE_PLAIN) {
            error_report(
                "launch line: the script '%s' stands before the launcher '%s', so its ranks cannot be checked (write '%s' "
                "before shunt-launch, or shunt-launch before the launcher in it)",
                line->words[0], line->words[i], line->words[0]);
            return -1;
        }
    return 0;
}

int plan_make(struct launch *launch)
{
    if (plan_find_own(launch) < 0 || plan_set_environment(launch) < 0 || plan_find_nodes(launch) < 0 ||
        plan_check_plain(launch) < 0)
        return -1;
    launch->preload = plan_compose_preload(&launch->line);
    if (!launch->preload)
        return -1;
    launch_without_shim();
    scheduler_own(); /* for agents that come to their nodes by other ways */
    plan_compose_agents(launch);
    plan_compose_job(launch);
    if (launch->agent.full || launch->agent_here.full || launch->job.full) {
        error_report("launch line: too long, or not enough memory (put part of it into a script that is the program)");
        return -1;
    }
    const struct agents_plan plan = {.means = plan_means(launch),
                                     .line = &launch->line,
                                     .keep = &launch->agent,
                                     .here = &launch->agent_here,
                                     .pretend = launch->fakes > 0};
    return agents_init(&launch->agents, &launch->nodes, &plan);
}

/* As a shell reads them. */
static void plan_print_words(const char *const *from, const char *mark)
{
    struct arguments words;
    arguments_init(&words);
    for (; *from; from++)
        arguments_add(&words, *from);
    char *quoted = arguments_quoted(&words);
    printf("%s%s", quoted ? quoted : "", mark);
    free(quoted);
    arguments_finish(&words);
}

static void plan_print_command(const struct arguments *words, const char *mark)
{
    plan_print_words((const char *const *)words->at, mark);
    putchar('\n');
}

static void plan_print_setting(const char *name, const char *value)
{
    printf("%s=", name);
    plan_print_words((const char *const[]){value, NULL}, " ");
}

void plan_print(const struct launch *launch)
{
    printf("# %zu %s, from %s:", launch->nodes.count, launch->nodes.count == 1 ? "node" : "nodes", launch->nodes.source);
    for (size_t i = 0; i < launch->nodes.count; i++)
        printf(" %s", launch->nodes.names[i]);
    printf("\n");
    for (size_t i = 0; i < launch->agents.count; i++)
        plan_print_command(&launch->agents.members[i].words, " &");
    if (launch->line.kind == LINE_PLAIN)
        plan_print_setting("LD_PRELOAD", launch->preload);
    plan_print_setting("SHUNT_ROOT", getenv("SHUNT_ROOT"));
    if (launch->fakes)
        plan_print_setting("SHUNT_NODE", getenv("SHUNT_NODE"));
    plan_print_command(&launch->job, "");
    for (size_t i = 0; i < launch->roots.count && launch->leave != LEAVE_NEVER; i++) {
        printf("%s", launch->leave == LEAVE_NOW ? "" : "# later: ");
        plan_print_words((const char *const[]){"shunt", "export", launch->roots.paths[i], NULL}, "\n");
    }
}

void plan_finish(struct launch *launch)
{
    agents_finish(&launch->agents);
    arguments_finish(&launch->job);
    arguments_finish(&launch->agent);
    arguments_finish(&launch->agent_here);
    nodes_finish(&launch->nodes);
    roots_finish(&launch->roots);
    roots_finish(&launch->served);
    free(launch->preload);
}
