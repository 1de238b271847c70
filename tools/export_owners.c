/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "export_owners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/session.h"
#include "stopping.h"

#define EXPORT_OWNERS_LEAST 16 /* files of a branch in a directory that are worth an order */

void export_owners_init(struct export_owners *of, const struct owners *owners, const struct union_root *root)
{
    *of = (struct export_owners){.owners = owners};
    if (owners == NULL)
        return;
    of->states = calloc(root->branch_count + 1, sizeof *of->states);
    if (of->states == NULL || session_epoch(root->path, &of->epoch) < 0)
        of->owners = NULL;
}

void export_owners_finish(struct export_owners *of)
{
    free(of->states);
    *of = (struct export_owners){0};
}

enum export_owners_state export_owners_state(const struct export_owners *of, const struct union_name *name)
{
    return of->owners != NULL ? (enum export_owners_state)of->states[name->branch] : EXPORT_OWNERS_NOT;
}

/* False: its node has no owner, or it cannot be told what to do. */
static bool export_owners_compose(const struct export_owners *of, const struct union_root *root, const struct folder *folder,
                                  size_t branch, char node[LAYOUT_BRANCH_MAX], char line[OWNER_LINE_MAX])
{
    static struct owner_order order;
    const char *name = root->branches[branch - 1];
    uint32_t incarnation;
    const size_t length = layout_branch_node(name, strlen(name), &incarnation);
    if (length == 0)
        return false;
    snprintf(node, LAYOUT_BRANCH_MAX, "%.*s", (int)length, name);
    if (!of->owners->has(of->owners->context, node))
        return false;
    order.epoch = of->epoch;
    snprintf(order.branch, sizeof order.branch, "%s", name);
    snprintf(order.mirror, sizeof order.mirror, "%s", folder->listing.marker.mirror);
    snprintf(order.root, sizeof order.root, "%s", root->path);
    snprintf(order.path, sizeof order.path, "%s", folder->path);
    return owner_order_format(&order, line, OWNER_LINE_MAX) > 0;
}

static void export_owners_order(struct export_owners *of, const struct union_root *root, const struct folder *folder,
                                size_t branch, void (*shows)(void *to, uint64_t files), void *to)
{
    char node[LAYOUT_BRANCH_MAX], line[OWNER_LINE_MAX];
    struct owner_answer answer = {0};
    if (!export_owners_compose(of, root, folder, branch, node, line))
        return;
    of->states[branch] = EXPORT_OWNERS_SOME;
    if (of->owners->order(of->owners->context, node, line, shows, to, &answer) < 0)
        return;
    of->files += answer.files;
    of->looked += answer.looked;
    if (answer.is_empty)
        of->states[branch] = EXPORT_OWNERS_ALL;
}

/* A conflict that could not be settled is the export's own to tell of. */
void export_owners_empty(struct export_owners *of, const struct union_root *root, const struct folder *folder,
                         void (*shows)(void *to, uint64_t files), void *to)
{
    size_t *counts = of->owners != NULL ? calloc(root->branch_count + 1, sizeof *counts) : NULL;
    if (counts == NULL)
        return;
    memset(of->states, EXPORT_OWNERS_NOT, root->branch_count + 1);
    for (size_t i = 0; i < folder->listing.count; i++)
        counts[folder->listing.names[i].branch]++;
    for (size_t i = 1; i <= root->branch_count && folder->listing.conflicts == 0 && !stopping(); i++)
        if (counts[i] >= EXPORT_OWNERS_LEAST)
            export_owners_order(of, root, folder, i, shows, to);
    free(counts);
}
