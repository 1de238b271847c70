/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What is to be run, from what was asked for: the nodes, an agent's command for each, the job's own. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/roots.h"
#include "launch/agents.h"
#include "launch/arguments.h"
#include "launch/line.h"
#include "launch/nodes.h"
#include "leaving/export.h"
#include "leaving/leave.h"

struct launch {
    struct roots roots;
    const char *placement, *leaf_full, *hosts;
    uint64_t fakes;
    enum leave leave;
    uint64_t quiet;            /* of --export background, else 0 */
    bool was_plain[ROOTS_MAX]; /* before it was started */
    bool takeover, dry_run;
    char own[PATH_MAX]; /* this program */
    struct line line;
    struct nodes nodes;
    struct arguments agent, agent_here, job;
    struct roots served; /* in the job: the roots, and those of the session around this process */
    char *preload;       /* LD_PRELOAD of the ranks */
    struct agents agents;
    struct export_sum exported; /* at the end */
    uint64_t export_ms;
    bool json;
};

/* How nodes are reached without a launch line, in an allocation of Slurm (no file of hosts) or outside. */
enum agents_means plan_helpers_means(const char *hosts);
/* Adds what an agent's command begins with: all settings of this environment, since some means pass none on. */
void plan_add_environment(enum agents_means, struct arguments *to);
/* Takes the launch line apart. 0, or -1 after a complaint. */
int plan_line(struct launch *, char **words);
/* All the rest; also sets SHUNT_ROOT, and takes SHUNT_NODE and the shim out of this environment. 0, or -1
 * after a complaint. */
int plan_make(struct launch *);
/* As a shell would be told. */
void plan_print(const struct launch *);
void plan_finish(struct launch *);
