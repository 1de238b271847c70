/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
/* shunt-launch: runs a parallel program with a daemon on each of its nodes. This file is the table of
 * contents: the command line, the plan, the run. */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "daemon.h"
#include "export.h"
#include "launch.h"
#include "launch/capture.h"
#include "launch/crew.h"
#include "launch/job.h"
#include "launch/keeper.h"
#include "launch/rank.h"
#include "orphans.h"
#include "verb.h"

enum { FAKE_NODES = VERB_LONG + 1, HOSTS, DRY_RUN, VERSION };

static const struct choice choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again (default: SHUNT_ROOT)"},
    {'k', "keep", NULL, "do not export: leave files where they are"},
    {'p', "placement", "auto|branch", "redirect files when it pays, or always (default: auto)"},
    {'f', "leaf-full", "N", "files in one leaf directory (default: by file system)"},
    {FAKE_NODES, "fake-nodes", "N", "N pretended nodes on this machine"},
    {HOSTS, "hosts", "FILE", "the nodes, one a line (default: those of the allocation)"},
    {DRY_RUN, "dry-run", NULL, "run nothing, print what would be run"},
    {'V', "version", NULL, "print the version"},
    {0},
};

static int launch(const struct verb *, int argc, char **argv);

const struct verb verbs[] = {
    {"shunt-launch", "[OPTION]... [--] LAUNCHER... PROGRAM...",
     "Start a daemon on each node of the job, run it under shunt, stop them, and export.", choices,
     VERB_COMMAND | VERB_ALONE, launch},
    {KEEPER, "", "Keep the daemons of one node.", keeper_choices, VERB_HIDDEN | VERB_ALONE, keeper},
    {RANK, "-- COMMAND...", "Prove that the shim is in place, then run a command.", rank_choices,
     VERB_COMMAND | VERB_HIDDEN | VERB_ALONE, rank_run},
    {0},
};

struct launch {
    struct roots roots;
    const char *placement, *leaf_full, *hosts;
    uint64_t fakes;
    bool keep, dry_run;
    char own[PATH_MAX]; /* this program */
    struct line line;
    struct nodes nodes;
    struct words keeper, job;
    char *preload; /* LD_PRELOAD of the ranks */
    struct crew crew;
};

static int take_number(const struct verb *verb, struct launch *launch, const char *text)
{
    if (config_number_parse(text, NODES_MAX, &launch->fakes) == 0)
        return 0;
    complain_usage(verb, "'%s' is no number of nodes from 1 to %d", text, NODES_MAX);
    return -1;
}

static int take_option(const struct verb *verb, struct launch *launch, int option)
{
    switch (option) {
    case 'r':
        return roots_add(&launch->roots, optarg);
    case 'p':
        launch->placement = optarg;
        return 0;
    case 'f':
        launch->leaf_full = optarg;
        return 0;
    case FAKE_NODES:
        return take_number(verb, launch, optarg);
    case HOSTS:
        launch->hosts = optarg;
        return 0;
    case DRY_RUN:
        launch->dry_run = true;
        return 0;
    case 'V':
        puts("shunt-launch " SHUNT_VERSION);
        return VERB_HELPED;
    default:
        launch->keep = true;
        return 0;
    }
}

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
        complain(
            "`%s --version` names neither Open MPI nor MPICH or one of its kin: use one of them, or srun",
            launcher);
    return kind;
}

static int complain_line(const struct line *line, int error)
{
    if (error == -ENOEXEC)
        complain("no program is found behind the options of %s: give the whole launch line", line->words[0]);
    else if (error == -EOPNOTSUPP)
        complain(
            "%s of %s takes programs from a file, where shunt cannot prove that it is in place: write them "
            "in the launch line",
            line->file, line->words[0]);
    else
        complain("more than %d programs in one launch line: use fewer", LINE_PARTS_MAX);
    return -1;
}

static int read_line(struct launch *launch, char **words)
{
    enum line_kind kind = line_kind(words);
    if (kind == LINE_UNTOLD && (kind = ask_version(words[0])) == LINE_UNTOLD)
        return -1;
    int error = line_parse(&launch->line, kind, words, is_program);
    if (error < 0)
        return complain_line(&launch->line, error);
    if (kind == LINE_SRUN && !launch->fakes && !launch->hosts && !getenv("SLURM_JOB_ID")) {
        complain(
            "srun would get nodes that are not known yet: run shunt-launch in a job of sbatch or salloc");
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
    words_add(&wrapper, RANK);
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

static int plan(struct launch *launch)
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

/* The run. */

static void print_command(const struct words *words, const char *mark)
{
    char *quoted = words_quoted(words);
    printf("%s%s\n", quoted ? quoted : "", mark);
    free(quoted);
}

static int print_plan(const struct launch *launch)
{
    printf("# %zu %s, from %s:", launch->nodes.count, launch->nodes.count == 1 ? "node" : "nodes",
           launch->nodes.source);
    for (size_t i = 0; i < launch->nodes.count; i++)
        printf(" %s", launch->nodes.names[i]);
    printf("\n");
    for (size_t i = 0; i < launch->crew.count; i++)
        print_command(&launch->crew.members[i].words, " &");
    if (launch->line.kind == LINE_PLAIN)
        printf("LD_PRELOAD='%s' ", launch->preload);
    print_command(&launch->job, "");
    for (size_t i = 0; i < launch->roots.count && !launch->keep; i++)
        printf("shunt export %s\n", launch->roots.paths[i]);
    return STATUS_OK;
}

static int leave(const struct launch *launch)
{
    const struct export_options options = {.quiet = true};
    int status = STATUS_OK;
    for (size_t i = 0; i < launch->roots.count; i++) {
        int answer = export_root(launch->roots.paths[i], &options);
        if (answer != STATUS_OK)
            status = answer;
    }
    return status;
}

static void complain_kept(const struct launch *launch)
{
    for (size_t i = 0; i < launch->roots.count; i++)
        complain("%s is left as it is: go on there with another session, or run `shunt export %s`",
                 launch->roots.paths[i], launch->roots.paths[i]);
}

static int end_session(struct launch *launch, const struct job_end *end, struct watch *watch)
{
    int stopped = crew_stop(&launch->crew, watch);
    bool leaves = stopped == 0 && end->signal == 0 && !launch->keep;
    watch_finish(watch);
    int left = leaves ? leave(launch) : STATUS_OK;
    if (!leaves && !launch->keep)
        complain_kept(launch);
    if (end->status)
        return end->status;
    if (end->signal || stopped > 0)
        return 128 + (end->signal ? end->signal : stopped);
    return stopped < 0 ? STATUS_FAILED : left;
}

/* What has been started is stopped again. */
static int give_up(struct launch *launch, int reason, struct watch *watch)
{
    crew_stop(&launch->crew, watch);
    watch_finish(watch);
    return reason > 0 ? 128 + reason : STATUS_FAILED;
}

static int run(struct launch *launch)
{
    struct watch watch;
    const struct job job = {launch->job.at, launch->line.kind == LINE_PLAIN ? launch->preload : NULL};
    for (size_t i = 0; i < launch->roots.count; i++)
        orphans_report(launch->roots.paths[i]);
    if (watch_init(&watch) < 0)
        return STATUS_FAILED;
    int error = crew_start(&launch->crew, &watch);
    if (error != 0)
        return give_up(launch, error, &watch);
    struct job_end end = job_run(&job, &launch->crew, &watch);
    if (end.killed) /* the keepers stop by themselves: this process's end is their sign */
        return 128 + end.signal;
    return end_session(launch, &end, &watch);
}

static int launch_all(struct launch *launch, char **words)
{
    if (roots_default(&launch->roots) < 0 || read_line(launch, words) < 0)
        return STATUS_USAGE;
    if (plan(launch) < 0)
        return STATUS_FAILED;
    return launch->dry_run ? print_plan(launch) : run(launch);
}

static void finish(struct launch *launch)
{
    crew_finish(&launch->crew);
    words_finish(&launch->job);
    words_finish(&launch->keeper);
    nodes_finish(&launch->nodes);
    roots_finish(&launch->roots);
    free(launch->preload);
}

static int launch(const struct verb *verb, int argc, char **argv)
{
    static struct launch launch;
    int option, wrong = 0;
    nodes_init(&launch.nodes);
    while (wrong == 0 && (option = verb_option(verb, argc, argv)) >= 0)
        wrong = take_option(verb, &launch, option);
    int status = wrong == VERB_HELPED ? STATUS_OK : wrong ? STATUS_USAGE : verb_status(option);
    if (wrong == 0 && option == VERB_END && optind == argc)
        status = complain_usage(verb, "give a command");
    else if (wrong == 0 && option == VERB_END)
        status = launch_all(&launch, argv + optind);
    finish(&launch);
    return status;
}

int main(int argc, char **argv)
{
    complain_as = "shunt-launch";
    const struct verb *hidden = argc > 1 ? verb_find(argv[1]) : NULL;
    if (hidden && hidden->flags & VERB_HIDDEN) /* a keeper's last words may have no reader any more */
        return hidden->run(hidden, argc - 1, argv + 1);
    int status = launch(&verbs[0], argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    complain("standard output cannot be written: %s", strerror(errno));
    return status ? status : STATUS_FAILED;
}
