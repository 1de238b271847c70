/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The owners of branches (owner.h) for an export that is not at the end of a launch: agents without daemons, on those nodes
 * that have files in branches. */

#include "launch/agents.h"
#include "launch/nodes.h"
#include "leaving/owner.h"

struct helpers {
    bool are_there;
    struct nodes nodes;
    struct arguments keep;
    struct agents agents;
    struct owners owners;
};

/* Starts them on nodes of that file, or with NULL on those of the allocation of Slurm, if there is one, by ssh or srun. Nodes
 * have nothing to do in a root that is served, or whose nodes ask a server. 0, also if there are none;
 * -1 after a complaint of the file; or the number of a signal, after a complaint. */
int helpers_begin(struct helpers *, char *const *roots, size_t count, const char *hosts);
/* Of that root. NULL: there are none. */
const struct owners *helpers_owners(const struct helpers *, const char *root);
/* Also after a failed helpers_begin. */
void helpers_end(struct helpers *);
