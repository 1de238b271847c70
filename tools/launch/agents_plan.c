/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launch/agents.h"
#include "command.h"

static void join(const struct nodes *nodes, size_t first, size_t count, struct words *to, const char *option)
{
    size_t size = strlen(option) + 1;
    for (size_t i = first; i < first + count; i++)
        size += strlen(nodes->names[i]) + 1;
    char *text = malloc(size), *at = text ? stpcpy(text, option) : NULL;
    for (size_t i = first; text && i < first + count; i++)
        at = stpcpy(stpcpy(at, i > first ? "," : ""), nodes->names[i]);
    if (text)
        words_add(to, text);
    else
        to->full = true;
    free(text);
}

static void add_words(struct words *to, const char *const *from)
{
    for (; *from; from++)
        words_add(to, *from);
}

/* A step beside the job's own, which is to have all processors and memory: hence --overlap (Slurm 20.11). */
static void add_srun(const struct nodes *nodes, size_t first, size_t count, struct words *to)
{
    static const char *const options[] = {
        "srun",         "--overlap",           "--mem=0", "--quiet", "--input=all", "--kill-on-bad-exit=0", "--wait=0",
        "--export=ALL", "--ntasks-per-node=1", NULL};
    add_words(to, options);
    words_format(to, "--nodes=%zu", count);
    words_format(to, "--ntasks=%zu", count);
    join(nodes, first, count, to, "--nodelist=");
}

/* Never with a keeper on this host: mpirun 4.1 does not end if --stdin all meets a process of its own. */
static void add_openmpi(const struct crew_plan *plan, const struct nodes *nodes, size_t first, size_t count, struct words *to)
{
    static const char *const options[] = {"--map-by", "ppr:1:node", "--stdin", "all", NULL};
    words_add(to, plan->line->words[0]);
    line_carry(plan->line, to);
    words_add(to, "-n");
    words_format(to, "%zu", count);
    add_words(to, options);
    words_add(to, "--host");
    join(nodes, first, count, to, "");
}

/* Hydra has standard input for its first rank alone: so one for each node. */
static void add_hydra(const struct crew_plan *plan, const char *node, struct words *to)
{
    words_add(to, plan->line->words[0]);
    line_carry(plan->line, to);
    const char *const options[] = {"-n", "1", "-ppn", "1", "-hosts", node, NULL};
    add_words(to, options);
}

static void add_ssh(const struct crew_plan *plan, const char *node, struct words *to)
{
    const char *const options[] = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", node, NULL};
    char *quoted = words_quoted(plan->keep);
    add_words(to, options);
    if (quoted)
        words_add(to, quoted);
    else
        to->full = true;
    free(quoted);
}

void crew_compose(const struct crew_plan *plan, const struct nodes *nodes, size_t first, size_t count, struct words *to)
{
    switch (plan->means) {
    case CREW_SRUN:
        add_srun(nodes, first, count, to);
        break;
    case CREW_OPENMPI:
        add_openmpi(plan, nodes, first, count, to);
        break;
    case CREW_HYDRA:
        add_hydra(plan, nodes->names[first], to);
        break;
    case CREW_SSH:
        add_ssh(plan, nodes->names[first], to); /* which hands a shell one line */
        return;
    }
    words_add_all(to, plan->keep);
}

static bool is_of_this_host(const struct crew_plan *plan, const char *node)
{
    return plan->pretend || nodes_is_here(node);
}

static void add_member(struct crew *crew, const struct crew_plan *plan, size_t first, size_t count)
{
    struct crew_member *member = &crew->members[crew->count++];
    *member = (struct crew_member){.first = first, .count = count, .to = -1, .from = -1};
    if (!is_of_this_host(plan, crew->nodes->names[first])) {
        crew_compose(plan, crew->nodes, first, count, &member->words);
        return;
    }
    words_add_all(&member->words, plan->keep);
    if (plan->pretend) {
        words_add(&member->words, "--node");
        words_add(&member->words, crew->nodes->names[first]);
    }
}

static bool is_complete(const struct crew *crew)
{
    for (size_t i = 0; i < crew->count; i++)
        if (crew->members[i].words.full)
            return false;
    return true;
}

int crew_init(struct crew *crew, const struct nodes *nodes, const struct crew_plan *plan)
{
    bool together = plan->means == CREW_SRUN || plan->means == CREW_OPENMPI;
    *crew = (struct crew){.nodes = nodes};
    crew->members = calloc(nodes->count, sizeof *crew->members);
    crew->serves = calloc(nodes->count, sizeof *crew->serves);
    for (size_t at = 0, count; crew->members && at < nodes->count; at += count) {
        count = together && !is_of_this_host(plan, nodes->names[at]) ? nodes->count - at : 1;
        add_member(crew, plan, at, count);
    }
    if (crew->members && crew->serves && is_complete(crew))
        return 0;
    complain("no memory for %zu nodes: make some free and run this again", nodes->count);
    crew_finish(crew);
    return -1;
}

void crew_finish(struct crew *crew)
{
    for (size_t i = 0; i < crew->count; i++)
        words_finish(&crew->members[i].words);
    free(crew->members);
    free(crew->serves);
    *crew = (struct crew){0};
}
