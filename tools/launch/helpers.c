/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/helpers.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "launch/agents_rest.h"
#include "launch/plan.h"
#include "leaving/export_owners.h"
#include "programs/launch.h"
#include "programs/places.h"
#include "session/session.h"
#include "tree/mirrors.h"

/* Those of the nodes that go by the name of that branch's, but for this one. */
static void helpers_mark_nodes(const struct nodes *nodes, const char *branch, bool *wanted)
{
    char node[LAYOUT_BRANCH_MAX];
    const bool has_node = owner_node_of(branch, node);
    for (size_t i = 0; has_node && i < nodes->count; i++)
        wanted[i] |= nodes_is_same(nodes->names[i], node) && !nodes_is_here(nodes->names[i]);
}

/* What could not be read is the export's to tell of. */
static void helpers_mark_branches(const struct nodes *nodes, const struct union_root *root, bool *wanted)
{
    struct mirror_names none = {0};
    struct mirrors mirrors;
    mirrors_init(&mirrors, root, &none);
    for (size_t i = 0; i < mirrors.count; i++)
        if (!mirrors.all[i].foreign && mirrors.all[i].files >= EXPORT_OWNERS_LEAST)
            helpers_mark_nodes(nodes, root->branches[mirrors.all[i].branch - 1], wanted);
    mirrors_finish(&mirrors);
}

static void helpers_mark_root(const struct nodes *nodes, const char *path, bool *wanted)
{
    struct union_root root;
    if (session_is_served(path) || union_root_init(&root, path, 0) < 0)
        return;
    helpers_mark_branches(nodes, &root, wanted);
    union_root_finish(&root);
}

static void helpers_keep_wanted(struct nodes *nodes, const bool *wanted)
{
    size_t kept = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        if (!wanted[i]) {
            free(nodes->names[i]);
            continue;
        }
        nodes->names[kept] = nodes->names[i];
        nodes->groups[kept++] = nodes->groups[i];
    }
    nodes->count = kept;
}

/* Leaves those nodes that have something to do. */
static void helpers_choose(struct nodes *nodes, char *const *roots, size_t count, bool is_asked)
{
    static bool wanted[NODES_MAX];
    memset(wanted, 0, sizeof wanted);
    for (size_t i = 0; i < count; i++)
        if (owner_shares_disk(roots[i]))
            helpers_mark_root(nodes, roots[i], wanted);
        else if (is_asked)
            error_report("%s: its nodes share no disk, and would ask the server for more than one does, so files are renamed "
                         "from here (leave --hosts out)",
                         roots[i]);
    helpers_keep_wanted(nodes, wanted);
}

static int helpers_compose(struct helpers *helpers, const char *hosts)
{
    const struct agents_plan plan = {plan_helpers_means(hosts), NULL, &helpers->keep, false, true};
    char launch[PATH_MAX];
    if (places_launch(launch) < 0)
        return -1;
    launch_without_shim();
    plan_add_environment(plan.means, &helpers->keep);
    arguments_add(&helpers->keep, launch);
    arguments_add(&helpers->keep, AGENT);
    arguments_add(&helpers->keep, "--" AGENT_HELPS);
    return agents_init(&helpers->agents, &helpers->nodes, &plan);
}

static int helpers_start(struct helpers *helpers)
{
    struct signal_wait watch;
    if (signal_wait_init(&watch) < 0)
        return -1;
    helpers->are_there = true;
    const int sign = agents_start_helpers(&helpers->agents, &watch);
    signal_wait_finish(&watch);
    signal(SIGPIPE, SIG_IGN); /* of one that has ended */
    helpers->owners = agents_rest_owners(&helpers->agents);
    if (sign > 0)
        error_report("export: interrupted before it began, nothing is changed (run this again)");
    return sign;
}

/* Each node has its own name: this one's is not handed on. Without helpers the export does it alone. */
static int helpers_start_elsewhere(struct helpers *helpers, const char *hosts)
{
    const char *node = getenv("SHUNT_NODE");
    char *own = node != NULL ? strdup(node) : NULL;
    unsetenv("SHUNT_NODE");
    int answer = helpers_compose(helpers, hosts);
    if (answer == 0)
        answer = helpers_start(helpers);
    if (own != NULL)
        setenv("SHUNT_NODE", own, 1);
    free(own);
    return answer < 0 ? 0 : answer;
}

int helpers_begin(struct helpers *helpers, char *const *roots, size_t count, const char *hosts)
{
    const struct line line = {0};
    *helpers = (struct helpers){0};
    nodes_init(&helpers->nodes);
    if (hosts == NULL && (getenv("SLURM_JOB_ID") == NULL || getenv("SLURM_JOB_NODELIST") == NULL))
        return 0;
    if (nodes_find(&helpers->nodes, hosts, &line) < 0)
        return hosts != NULL ? -1 : 0;
    helpers_choose(&helpers->nodes, roots, count, hosts != NULL);
    return helpers->nodes.count > 0 ? helpers_start_elsewhere(helpers, hosts) : 0;
}

const struct owners *helpers_owners(const struct helpers *helpers, const char *root)
{
    return helpers->are_there && owner_shares_disk(root) ? &helpers->owners : NULL;
}

void helpers_end(struct helpers *helpers)
{
    if (helpers->are_there)
        agents_rest_end(&helpers->agents);
    agents_finish(&helpers->agents);
    arguments_finish(&helpers->keep);
    nodes_finish(&helpers->nodes);
}
