/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "leaving/export_owners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/stopping.h"
#include "session/session.h"

#define EXPORT_OWNERS_TURN (20 * CLOCK_MILLISECOND)

enum export_owners_state {
    EXPORT_OWNERS_NOT,     /* the export's own */
    EXPORT_OWNERS_WAITS,   /* an order is to be given */
    EXPORT_OWNERS_ORDERED, /* now or before */
};

/* -1: its node has no owner. */
static int export_owners_find(const struct owners *owners, const char *branch)
{
    char node[LAYOUT_BRANCH_MAX];
    return owner_node_of(branch, node) ? owners->find(owners->context, node) : -1;
}

void export_owners_init(struct export_owners *of, const struct owners *owners, const struct union_root *root)
{
    *of = (struct export_owners){.branch_count = root->branch_count};
    if (owners == NULL || session_epoch(root->path, &of->epoch) < 0)
        return;
    of->numbers = calloc(root->branch_count + 1, sizeof *of->numbers);
    if (of->numbers == NULL)
        return;
    of->owners = owners;
    for (size_t i = 1; i <= root->branch_count; i++)
        of->numbers[i] = export_owners_find(owners, root->branches[i - 1]);
}

void export_owners_finish(struct export_owners *of)
{
    free(of->numbers);
    *of = (struct export_owners){0};
}

void export_aside_destroy(struct export_aside *aside)
{
    if (aside == NULL)
        return;
    folder_close(&aside->folder);
    free(aside->states);
    free(aside);
}

bool export_aside_was_ordered(const struct export_aside *aside, const struct union_name *name)
{
    return aside->states[name->branch] == EXPORT_OWNERS_ORDERED;
}

/* Those branches that are worth an order, and whose nodes have an owner. */
static void export_owners_choose(const struct export_owners *of, struct export_aside *aside, const struct listing *listing,
                                 size_t *counts)
{
    for (size_t i = 0; i < listing->count; i++)
        counts[listing->names[i].branch]++;
    for (size_t i = 1; i <= of->branch_count; i++)
        if (counts[i] >= EXPORT_OWNERS_LEAST && of->numbers[i] >= 0) {
            aside->states[i] = EXPORT_OWNERS_WAITS;
            aside->waiting++;
        }
}

static struct export_aside *export_owners_create(const struct export_owners *of, const struct listing *listing)
{
    struct export_aside *aside = calloc(1, sizeof *aside);
    size_t *counts = calloc(of->branch_count + 1, sizeof *counts);
    if (aside != NULL) {
        aside->folder.fd = -1;
        aside->states = calloc(of->branch_count + 1, sizeof *aside->states);
    }
    if (aside != NULL && aside->states != NULL && counts != NULL)
        export_owners_choose(of, aside, listing, counts);
    free(counts);
    return aside;
}

/* Can an owner be told of it? */
static bool export_owners_compose(const struct export_owners *of, const struct union_root *root,
                                  const struct export_aside *aside, size_t branch, char line[OWNER_LINE_MAX])
{
    static struct owner_order order;
    order.epoch = of->epoch;
    snprintf(order.branch, sizeof order.branch, "%s", root->branches[branch - 1]);
    snprintf(order.mirror, sizeof order.mirror, "%s", aside->mirror);
    snprintf(order.root, sizeof order.root, "%s", root->path);
    snprintf(order.path, sizeof order.path, "%s", aside->folder.path);
    return owner_order_format(&order, line, OWNER_LINE_MAX) > 0;
}

static void export_owners_append(struct export_owners *of, struct export_aside *aside)
{
    struct export_aside **at = &of->first;
    while (*at != NULL)
        at = &(*at)->next;
    *at = aside;
    of->count++;
}

/* A conflict that could not be settled is the export's own to tell of. */
struct export_aside *export_owners_put_aside(struct export_owners *of, const struct union_root *root, struct folder *folder)
{
    if (of->owners == NULL || of->count == EXPORT_OWNERS_ASIDE || folder->listing.conflicts > 0 || stopping())
        return NULL;
    struct export_aside *aside = export_owners_create(of, &folder->listing);
    if (aside == NULL || aside->waiting == 0) {
        export_aside_destroy(aside);
        return NULL;
    }
    snprintf(aside->mirror, sizeof aside->mirror, "%s", folder->listing.marker.mirror);
    folder_unlist(folder);
    aside->folder = *folder;
    folder->fd = -1;
    export_owners_append(of, aside);
    return aside;
}

/* Takes in how far the owner is. */
static void export_owners_collect(struct export_owners *of, struct export_aside *aside)
{
    struct owner_answer answer = {0};
    const int owner = of->numbers[aside->at_work];
    const enum owner_state state = of->owners->state(of->owners->context, owner, &answer);
    if (state == OWNER_WORKS) {
        of->underway += answer.files;
        of->working++;
        return;
    }
    of->files += answer.files;
    of->looked += answer.looked;
    aside->at_work = 0;
}

static void export_owners_order(struct export_owners *of, const struct union_root *root, struct export_aside *aside,
                                size_t branch)
{
    static char line[OWNER_LINE_MAX];
    aside->waiting--;
    aside->states[branch] = EXPORT_OWNERS_NOT;
    if (!export_owners_compose(of, root, aside, branch, line))
        return;
    aside->states[branch] = EXPORT_OWNERS_ORDERED; /* also one that is lost, which may have read it */
    if (of->owners->order(of->owners->context, of->numbers[branch], line)) {
        aside->at_work = branch;
        of->working++;
    }
}

/* The next of a directory whose owner is not at work elsewhere. */
static void export_owners_go_on(struct export_owners *of, const struct union_root *root, struct export_aside *aside)
{
    struct owner_answer answer;
    for (size_t i = 1; i <= of->branch_count && aside->waiting > 0 && aside->at_work == 0; i++) {
        if (aside->states[i] != EXPORT_OWNERS_WAITS)
            continue;
        const enum owner_state state = of->owners->state(of->owners->context, of->numbers[i], &answer);
        if (state == OWNER_LOST) {
            aside->states[i] = EXPORT_OWNERS_NOT;
            aside->waiting--;
        } else if (state != OWNER_WORKS) {
            export_owners_order(of, root, aside, i);
        }
    }
}

/* An owner that has answered keeps its answer until its next order: so all answers are taken in first. */
void export_owners_turn(struct export_owners *of, const struct union_root *root, int milliseconds)
{
    if (of->first == NULL)
        return;
    of->owners->wait(of->owners->context, milliseconds);
    of->turned = clock_monotonic();
    of->underway = of->working = 0;
    for (struct export_aside *aside = of->first; aside != NULL; aside = aside->next)
        if (aside->at_work != 0)
            export_owners_collect(of, aside);
    for (struct export_aside *aside = of->first; aside != NULL; aside = aside->next)
        if (aside->at_work == 0)
            export_owners_go_on(of, root, aside);
}

bool export_owners_are_due(const struct export_owners *of)
{
    return of->first != NULL && clock_monotonic() >= of->turned + EXPORT_OWNERS_TURN;
}

void export_owners_cancel(struct export_owners *of)
{
    for (struct export_aside *aside = of->first; aside != NULL; aside = aside->next) {
        for (size_t i = 1; i <= of->branch_count; i++)
            if (aside->states[i] == EXPORT_OWNERS_WAITS)
                aside->states[i] = EXPORT_OWNERS_NOT;
        aside->waiting = 0;
    }
}

struct export_aside *export_owners_take(struct export_owners *of)
{
    struct export_aside **at = &of->first;
    while (*at != NULL && ((*at)->at_work != 0 || (*at)->waiting > 0))
        at = &(*at)->next;
    struct export_aside *aside = *at;
    if (aside == NULL)
        return NULL;
    *at = aside->next;
    of->count--;
    return aside;
}
