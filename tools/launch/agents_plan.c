/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "launch/agents.h"

static void agents_plan_join(const struct nodes *nodes, size_t first, size_t count, struct arguments *to, const char *option)
{
    size_t size = strlen(option) + 1;
    for (size_t i = first; i < first + count; i++)
        size += strlen(nodes->names[i]) + 1;
    char *text = malloc(size), *at = text ? stpcpy(text, option) : NULL;
    for (size_t i = first; text && i < first + count; i++)
        at = stpcpy(stpcpy(at, i > first ? "," : ""), nodes->names[i]);
    if (text)
        arguments_add(to, text);
    else
        to->full = true;
    free(text);
}

static void agents_plan_add_words(struct arguments *to, const char *const *from)
{
    for (; *from; from++)
        arguments_add(to, *from);
}

/* A step next to the job's own, which is to have all processors and memory: hence --overlap (Slurm 20.11). Its input and output
 * are ours, whatever SLURM_STDINMODE, SLURM_STDOUTMODE and SLURM_STDERRMODE say of the user's steps. */
static void agents_plan_add_srun(const struct nodes *nodes, size_t first, size_t count, struct arguments *to)
{
    static const char *const options[] = {"srun",
                                          "--overlap",
                                          "--mem=0",
                                          "--input=all",
                                          "--output=all",
                                          "--error=all",
                                          "--kill-on-bad-exit=0",
                                          "--no-kill",
                                          "--wait=0",
                                          "--export=ALL",
                                          "--ntasks-per-node=1",
                                          NULL};
    agents_plan_add_words(to, options);
    if (getenv("SLURM_DEBUG") == NULL) /* with which srun does not take it */
        arguments_add(to, "--quiet");
    if (nodes->groups[first] > 0)
        arguments_format(to, "--het-group=%d", nodes->groups[first] - 1);
    arguments_format(to, "--nodes=%zu", count);
    arguments_format(to, "--ntasks=%zu", count);
    agents_plan_join(nodes, first, count, to, "--nodelist=");
}

/* Never with an agent on this host: mpirun 4.1 does not end if --stdin all meets a process of its own. */
static void agents_plan_add_openmpi(const struct agents_plan *plan, const struct nodes *nodes, size_t first, size_t count,
                                    struct arguments *to)
{
    static const char *const options[] = {"--map-by", "ppr:1:node", "--stdin", "all", NULL};
    arguments_add(to, plan->line->words[0]);
    line_carry(plan->line, to);
    arguments_add(to, "-n");
    arguments_format(to, "%zu", count);
    agents_plan_add_words(to, options);
    arguments_add(to, "--host");
    agents_plan_join(nodes, first, count, to, "");
}

/* Hydra has standard input for its first rank alone: so one for each node. */
static void agents_plan_add_hydra(const struct agents_plan *plan, const char *node, struct arguments *to)
{
    arguments_add(to, plan->line->words[0]);
    line_carry(plan->line, to);
    const char *const options[] = {"-n", "1", "-ppn", "1", "-hosts", node, NULL};
    agents_plan_add_words(to, options);
}

static void agents_plan_add_ssh(const struct agents_plan *plan, const char *node, struct arguments *to)
{
    const char *const options[] = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", node, NULL};
    char *quoted = arguments_quoted(plan->keep);
    agents_plan_add_words(to, options);
    if (quoted)
        arguments_add(to, quoted);
    else
        to->full = true;
    free(quoted);
}

void agents_compose(const struct agents_plan *plan, const struct nodes *nodes, size_t first, size_t count, struct arguments *to)
{
    switch (plan->means) {
    case AGENTS_SRUN:
        agents_plan_add_srun(nodes, first, count, to);
        break;
    case AGENTS_OPENMPI:
        agents_plan_add_openmpi(plan, nodes, first, count, to);
        break;
    case AGENTS_HYDRA:
        agents_plan_add_hydra(plan, nodes->names[first], to);
        break;
    case AGENTS_SSH:
        agents_plan_add_ssh(plan, nodes->names[first], to); /* which hands a shell one line */
        return;
    }
    arguments_add_all(to, plan->keep);
}

static bool agents_plan_is_of_this_host(const struct agents_plan *plan, const char *node)
{
    return plan->pretend || nodes_is_here(node);
}

static void agents_plan_add_member(struct agents *agents, const struct agents_plan *plan, size_t first, size_t count)
{
    struct agents_member *member = &agents->members[agents->count++];
    *member =
        (struct agents_member){.first = first,
                               .count = count,
                               .to = -1,
                               .from = -1,
                               .is_here = !plan->pretend && agents_plan_is_of_this_host(plan, agents->nodes->names[first])};
    if (!agents_plan_is_of_this_host(plan, agents->nodes->names[first])) {
        agents_compose(plan, agents->nodes, first, count, &member->words);
        return;
    }
    arguments_add_all(&member->words, plan->here ? plan->here : plan->keep);
    if (plan->pretend) {
        arguments_add(&member->words, "--node");
        arguments_add(&member->words, agents->nodes->names[first]);
    }
}

static bool agents_plan_is_complete(const struct agents *agents)
{
    for (size_t i = 0; i < agents->count; i++)
        if (agents->members[i].words.full)
            return false;
    return true;
}

/* How many from this one on one command brings to their nodes: srun those of one group. */
static size_t agents_plan_count(const struct agents_plan *plan, const struct nodes *nodes, size_t at)
{
    bool together = plan->means == AGENTS_SRUN || plan->means == AGENTS_OPENMPI;
    size_t end = at + 1;
    while (together && !agents_plan_is_of_this_host(plan, nodes->names[at]) && end < nodes->count &&
           (plan->means != AGENTS_SRUN || nodes->groups[end] == nodes->groups[at]))
        end++;
    return end - at;
}

int agents_init(struct agents *agents, const struct nodes *nodes, const struct agents_plan *plan)
{
    *agents = (struct agents){.nodes = nodes, .helps = plan->helps};
    agents->members = calloc(nodes->count, sizeof *agents->members);
    agents->serves = calloc(nodes->count, sizeof *agents->serves);
    agents->named = calloc(nodes->count, sizeof *agents->named);
    for (size_t at = 0, count; agents->members && at < nodes->count; at += count) {
        count = agents_plan_count(plan, nodes, at);
        agents_plan_add_member(agents, plan, at, count);
    }
    if (agents->members && agents->serves && agents->named && agents_plan_is_complete(agents))
        return 0;
    error_report("%zu nodes: not enough memory (free some and run this again)", nodes->count);
    agents_finish(agents);
    return -1;
}

void agents_finish(struct agents *agents)
{
    for (size_t i = 0; i < agents->count; i++)
        arguments_finish(&agents->members[i].words);
    free(agents->members);
    free(agents->serves);
    free(agents->named);
    *agents = (struct agents){0};
}
