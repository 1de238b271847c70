/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Takes what a node has in its branch to the trunk while the session goes on: `shunt export --live`, `--export background`.
 *
 * It is a client of the node's daemon like any other: for one file after the other it claims the name, renames the file and
 * says where it is by now (shim/promote.h), so names stay strict, and it may be killed at any moment. It takes only files of
 * the node it runs on, from directories in which no name came or went for a while, one node at a time in a directory, at low
 * priority, and leaves a directory alone as soon as somebody makes or removes a name there. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "roots.h"

#define LIVE_QUIET 30 /* seconds, unless somebody says otherwise */
#define LIVE_QUIET_MAX 86400

struct live_options {
    uint64_t quiet; /* ns in which no name came or went */
    bool json;      /* the result as an object */
    bool progress;  /* show it even if standard error is no terminal */
};

/* Once through the branch of one root; the node is that of the daemon here. To be called once in a process. The exit status,
 * which says so after a complaint, or 128 and the signal that interrupted it. */
int live_export(const char *root, const char *node, const struct live_options *);

/* A process that does so again and again, and ends with the one that began it. */
struct live_child {
    pid_t pid; /* 0: there is none */
    int fd;    /* its pidfd */
};

/* Where none can be made, everything is exported at the end. Of all roots; their daemons serve. */
void live_begin(struct live_child *, const struct roots *, const char *node, uint64_t quiet);
/* Returns when it has ended. */
void live_end(struct live_child *);
