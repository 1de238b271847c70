/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Files are renamed out of a branch by the node that made them, at the order of the export that holds the root.
 *
 * Where the nodes share a disk, a rename by another node has to take the locks of the file and of its leaf away from their
 * owner first: on OCFS2 and GFS2 some ten times what the owner's rename takes. The export decides all: it lists and settles a
 * directory, orders one owner after the other to empty its mirror, and does itself what is left. An owner moves what lies in a
 * mirror under the name that it has there; it replaces nothing that the export itself would not, by the same calls, and ends
 * when the process that gave the order has, or holds the root no more. So both may be at the same file, as when the export has
 * given an owner up: one of them renames it, and the other does not find it. */

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
    bool is_empty;          /* nothing is left in the mirror */
};

/* Pure. The line of an order, without its end: the length, or -EINVAL: a path has a control character, or is too long. */
int owner_order_format(const struct owner_order *, char *to, size_t size);
/* Pure. 0, or -EBADMSG: no such line. */
int owner_order_parse(struct owner_order *, const char *line);

/* Carries it out. It goes on as long as goes_on says so, which is asked before each file with how many were renamed so far. */
void owner_carry_out(const struct owner_order *, bool (*goes_on)(void *context, uint64_t files), void *context,
                     struct owner_answer *);

/* The owners, as the export sees them. */
struct owners {
    void *context;
    /* Is there a process on that node, and is it another node than this one? */
    bool (*has)(void *context, const char *node);
    /* Orders it. Returns when it has answered: 0; or when it is known, or to be assumed, that it does not go on: -1. Calls
     * `shows` meanwhile with how many files were renamed. */
    int (*order)(void *context, const char *node, const char *line, void (*shows)(void *to, uint64_t files), void *to,
                 struct owner_answer *);
};
