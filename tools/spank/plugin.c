/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
/* Slurm's plugin: srun --shunt=DIR, #SBATCH --shunt=DIR. Without the option each call below returns at once.
 *
 *   where                     who     what
 *   srun, before the step     user    takes over what killed jobs left in DIR
 *   a node, first task        user    starts the node's daemons, in the step's cgroup (node.h)
 *   a node, each task         user    gets the environment that `shunt exec` gives
 *   a node, last task's end   root    lets go of the socket: the daemons stop; after a batch script, export
 *   srun, after the step      user    exports, unless the script around it is under shunt and will
 *
 * Nothing of the user's is opened, parsed or executed by root. What fails before a program begins, ends its task with 97: a
 * plugin that is `optional` in plugstack.conf cannot fail a step in another way. */

#pragma GCC visibility push(default)
#include <slurm/slurm.h>
#include <slurm/spank.h>
SPANK_PLUGIN(shunt, 1)
#pragma GCC visibility pop

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/plugin_step.h"
#include "spank/node.h"

#define NO_SHUNT 97 /* as a rank of shunt-launch */

/* In a batch script: the job's number and its roots, for each of its steps. Slurm hands on what begins with SLURM_ also with
 * --export=NONE, and may hand it on to another job. */
#define AROUND "SLURM_SHUNT_AROUND"

static struct {
    const char *bin;
    const char *roots; /* NULL: none of this is asked for */
    const char *leave; /* shunt-launch's --export; owned, or a literal */
    int began;         /* the session of srun's step */
    uint32_t running;  /* tasks of this node */
    struct node node;
} plugin = {.bin = SHUNT_BIN, .leave = "now", .node = {-1, -1, -1, -1}};

/* Options. */

static int plugin_take_root(int value, const char *list, int remote)
{
    const char *fault = list ? tool_complain_roots(list) : "no directory";
    if (fault)
        slurm_error("--shunt '%s': %s", list ? list : "", fault);
    plugin.roots = fault ? NULL : strdup(list);
    if (plugin.roots)
        return 0;
    plugin.roots = remote ? "" : NULL; /* a node runs nothing then */
    return -1;
}

static int plugin_take_keep(int value, const char *argument, int remote)
{
    plugin.leave = "never";
    return 0;
}

static int plugin_take_export(int value, const char *when, int remote)
{
    const char *fault = when ? tool_complain_export(when) : "no time";
    if (fault)
        slurm_error("--shunt-export '%s': %s", when ? when : "", fault);
    char *copy = fault ? NULL : strdup(when);
    if (!copy)
        return -1;
    plugin.leave = copy;
    return 0;
}

static struct spank_option plugin_options[] = {
    {"shunt", "DIR[:DIR...]", "spread the files of DIR over directories of the nodes, shown as one (shunt-slurm(7))", 1, 0,
     plugin_take_root},
    {"shunt-export", "WHEN", "when to export DIR: " TOOL_EXPORT_WORDS " (default: now)", 1, 0, plugin_take_export},
    {"shunt-keep", NULL, "as --shunt-export=never", 0, 0, plugin_take_keep},
};

int slurm_spank_init(spank_t spank, int count, char *words[])
{
    const spank_context_t context = spank_context();
    for (int i = 0; i < count; i++)
        if (!strncmp(words[i], "bin=", 4))
            plugin.bin = words[i] + 4;
        else
            slurm_error("shunt: plugstack.conf: '%s' is unknown (use bin=DIR)", words[i]);
    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE)
        return 0;
    for (size_t i = 0; i < sizeof plugin_options / sizeof *plugin_options; i++)
        if (spank_option_register(spank, plugin_options + i) != ESPANK_SUCCESS)
            return -1;
    return 0;
}

/* srun, sbatch, salloc. */

/* A prolog and an epilog see by SPANK_SHUNT that the job asked for shunt; they are root's, and the value is the user's. */
int slurm_spank_init_post_opt(spank_t spank, int count, char *words[])
{
    if (plugin.roots && spank_context() != S_CTX_REMOTE)
        spank_job_control_setenv(spank, "SHUNT", plugin.roots, 1);
    return 0;
}

static int plugin_run_for_srun(const char *command, const char *when)
{
    struct tool tool;
    int status = -1;
    if (tool_init(&tool, plugin.bin, "shunt-launch", environ, NULL, 0) == 0 && tool_add(&tool, command) == 0 &&
        tool_add_roots(&tool, plugin.roots) == 0 && (!when || tool_add_export(&tool, when) == 0))
        status = tool_run(&tool);
    tool_finish(&tool);
    return status;
}

int slurm_spank_local_user_init(spank_t spank, int count, char *words[])
{
    if (!plugin.roots)
        return 0;
    plugin.began = 1;
    return plugin_run_for_srun(STEP_BEGIN, NULL) == 0 ? 0 : -1;
}

/* A node. */

/* An external step has no program of the user's. */
static int plugin_serves(spank_t spank, uint32_t *step)
{
    return plugin.roots && spank_get_item(spank, S_JOB_STEPID, step) == ESPANK_SUCCESS && *step != SLURM_EXTERN_CONT;
}

int slurm_spank_user_init(spank_t spank, int count, char *words[])
{
    uint32_t step;
    if (!plugin_serves(spank, &step))
        return 0;
    if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &plugin.running) == ESPANK_SUCCESS && node_init(&plugin.node) == 0)
        return 0;
    slurm_error("shunt: no descriptors or memory for its daemons (raise the limits of slurmd)");
    return -1;
}

int slurm_spank_task_post_fork(spank_t spank, int count, char *words[])
{
    node_has_forked(&plugin.node);
    return 0;
}

/* A name of its own for each step: steps of one job that share a node are nodes to each other, and each daemon lives as long as
 * the step whose cgroup it is in. */
static void plugin_name_node(spank_t spank, uint32_t step, char name[64])
{
    char host[64] = "", number[16] = "batch";
    uint32_t job = 0;
    spank_get_item(spank, S_JOB_ID, &job);
    if (spank_getenv(spank, "SLURMD_NODENAME", host, sizeof host) != ESPANK_SUCCESS)
        gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    if (step != SLURM_BATCH_SCRIPT)
        snprintf(number, sizeof number, step == SLURM_INTERACTIVE_STEP ? "shell" : "%u", step);
    snprintf(name, 64, "%.36s.%u.%s", host, job, number);
}

/* Of all groups of a heterogeneous job. */
static void plugin_find_job(spank_t spank, char number[16])
{
    uint32_t job = 0;
    if (spank_getenv(spank, "SLURM_HET_JOB_ID", number, 16) == ESPANK_SUCCESS)
        return;
    spank_get_item(spank, S_JOB_ID, &job);
    snprintf(number, 16, "%u", job);
}

static void plugin_tell_steps(spank_t spank)
{
    char number[16], *value = NULL;
    plugin_find_job(spank, number);
    if (asprintf(&value, "%s:%s", number, plugin.roots) >= 0)
        spank_setenv(spank, AROUND, value, 1);
    free(value);
}

/* In a task: a step serves its own roots and those of the script around it. 0, or -1 after a complaint. */
static int plugin_join_script(spank_t spank)
{
    static char around[2 * PATH_MAX], all[4 * PATH_MAX];
    char number[16];
    const spank_err_t error = spank_getenv(spank, AROUND, around, sizeof around);
    plugin_find_job(spank, number);
    const size_t length = strlen(number);
    const char *roots =
        error == ESPANK_SUCCESS && !strncmp(around, number, length) && around[length] == ':' ? around + length + 1 : "";
    if (error == ESPANK_ENV_NOEXIST || (error == ESPANK_SUCCESS && (*roots == '\0' || !strcmp(roots, plugin.roots))))
        return 0;
    const int size = snprintf(all, sizeof all, "%s:%s", plugin.roots, roots);
    const char *fault =
        error != ESPANK_SUCCESS || size >= (int)sizeof all ? "too long (use directories further up)" : tool_complain_roots(all);
    if (fault)
        fprintf(stderr, "shunt: --shunt '%s' in a script with others: %s\n", plugin.roots, fault);
    plugin.roots = all;
    return fault ? -1 : 0;
}

/* As node_start. */
static int plugin_start(char **environment, const char *node, uint32_t step)
{
    struct tool tool;
    int error = -1;
    if (tool_init(&tool, plugin.bin, "shunt-launch", environment, NULL, 0) == 0 && tool_add(&tool, STEP_KEEP) == 0 &&
        tool_add_roots(&tool, plugin.roots) == 0 && tool_add_export(&tool, plugin.leave) == 0 &&
        tool_add(&tool, "--node") == 0 && tool_add(&tool, node) == 0 &&
        (step != SLURM_BATCH_SCRIPT || tool_add(&tool, "--job") == 0))
        error = node_start(&plugin.node, &tool);
    tool_finish(&tool);
    return error;
}

static void plugin_take_variable(void *spank, const char *setting)
{
    char name[64];
    const size_t length = strcspn(setting, "=");
    if (setting[length] != '=' || length >= sizeof name ||
        (strncmp(setting, "LD_PRELOAD=", 11) != 0 && strncmp(setting, "SHUNT_", 6) != 0))
        return;
    snprintf(name, sizeof name, "%.*s", (int)length, setting);
    spank_setenv(spank, name, setting + length + 1, 1);
}

/* What `shunt exec` gives a command, which it does once the library is loaded and the daemons answer. */
static int plugin_set_environment(spank_t spank, char **environment, const char *node)
{
    static const char *const command[] = {"--node", NULL, "--", "/usr/bin/env", "-0"};
    struct tool tool;
    int status = -1, error = tool_init(&tool, plugin.bin, "shunt", environment, node, 1);
    error = error == 0 && tool_add(&tool, "exec") == 0 ? tool_add_roots(&tool, plugin.roots) : -1;
    for (size_t i = 0; i < sizeof command / sizeof *command && error == 0; i++)
        error = tool_add(&tool, command[i] ? command[i] : node);
    if (error == 0)
        status = tool_read(&tool, plugin_take_variable, spank);
    tool_finish(&tool);
    return status;
}

/* In the process that becomes the program, whose standard error this is, as the user, in the step's cgroup. */
int slurm_spank_task_init(spank_t spank, int count, char *words[])
{
    uint32_t step;
    uid_t user;
    int task, off;
    char **environment, node[64];
    if (!plugin_serves(spank, &step))
        return 0;
    if (spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS || getuid() != user || geteuid() != user ||
        spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS || plugin.node.here < 0)
        _exit(NO_SHUNT);
    plugin_name_node(spank, step, node);
    off = step != SLURM_BATCH_SCRIPT ? plugin_join_script(spank) : 0;
    if (off == 0)
        off = task > 0 ? node_await_start(&plugin.node) : plugin_start(environment, node, step);
    if (off < 0 || (off == 0 && plugin_set_environment(spank, environment, node) != 0)) {
        fprintf(stderr, "shunt: node %s: the program is not run, since --shunt could not be done (see the message above)\n",
                node);
        _exit(NO_SHUNT);
    }
    if (off == 0 && step == SLURM_BATCH_SCRIPT)
        plugin_tell_steps(spank);
    return 0;
}

int slurm_spank_task_exit(spank_t spank, int count, char *words[])
{
    uint32_t step;
    int status = 0;
    if (!plugin_serves(spank, &step) || plugin.running == 0 || --plugin.running > 0)
        return 0;
    spank_get_item(spank, S_TASK_EXIT_STATUS, &status);
    node_stop(&plugin.node, step == SLURM_BATCH_SCRIPT && (WIFEXITED(status) || !strncmp(plugin.leave, "later", 5)));
    return 0;
}

int slurm_spank_exit(spank_t spank, int count, char *words[])
{
    if (plugin.began)
        plugin_run_for_srun(STEP_END, plugin.leave); /* its messages are all that it changes */
    node_stop(&plugin.node, 0);
    return 0;
}
