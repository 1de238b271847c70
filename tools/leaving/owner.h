/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Files are renamed out of a branch by the node that made them, at the order of the export that holds the root.
 *
 * Where the nodes share a disk, a rename by another node has to take the locks of the file and of its leaf away from their
 * owner first: on OCFS2 and GFS2 some ten times what the owner's rename takes. The export decides all: it lists and settles a
 * directory, orders one owner after the other to empty its mirror, lists it again, and does itself what is left. An owner moves
 * what lies in a mirror under the name that it has there; it replaces nothing that the export itself would not, by the same
 * calls, and ends when the process that gave the order has, or holds the root no more. So both may be at the same file, as when
 * the export has given an owner up: one of them renames it, and the other does not find it. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "union/layout.h"

#define OWNER_LINE_MAX (2 * PATH_MAX + LAYOUT_BRANCH_MAX + RECORD_MIRROR_MAX + 64)

struct owner_order {
    uint64_t epoch; /* of the claim by which the root is held */
    char branch[LAYOUT_BRANCH_MAX], mirror[RECORD_MIRROR_MAX];
    char root[PATH_MAX], path[PATH_MAX]; /* the directory, relative to the root */
};

struct owner_answer {
    uint64_t files, looked; /* renamed; ... after a look at the name alone */
};

/* Do the nodes themselves look names up there, and lock what they change? A server would be asked for more by several nodes
 * than by one (docs/performance.md, Leaving). */
bool owner_shares_disk(const char *root);

/* Pure. The line of an order, without its end: the length, or -EINVAL: a path has a control character, or is too long. */
int owner_order_format(const struct owner_order *, char *to, size_t size);
/* Pure. 0, or -EBADMSG: no such line. */
int owner_order_parse(struct owner_order *, const char *line);

/* Carries it out. It goes on as long as goes_on says so, which is asked before each file with how many were renamed so far. */
void owner_carry_out(const struct owner_order *, bool (*goes_on)(void *context, uint64_t files), void *context,
                     struct owner_answer *);

enum owner_state {
    OWNER_FREE,
    OWNER_WORKS,
    OWNER_ANSWERED, /* until its next order */
    OWNER_LOST,     /* it is known, or to be assumed, that it does not go on */
};

/* The node whose branch has that name; its name is written to `node`. False: no branch has such a name. */
bool owner_node_of(const char *branch, char node[LAYOUT_BRANCH_MAX]);

/* The owners, as the export sees them. Each carries out one order at a time. */
struct owners {
    void *context;
    /* The number of the process on that node; -1: there is none, or it is this node. */
    int (*find)(void *context, const char *node);
    /* ... and how many files it has renamed so far, or its answer. */
    enum owner_state (*state)(void *context, int owner, struct owner_answer *);
    /* Orders one that is free, or has answered, and returns at once. False: it is lost. */
    bool (*order)(void *context, int owner, const char *line);
    /* Takes in what they say: at most so long, until there is something. */
    void (*wait)(void *context, int milliseconds);
    /* All are told to end, which they do with an answer. */
    void (*dismiss)(void *context);
};
