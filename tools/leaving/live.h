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

#include "cli/roots.h"

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

/* Through those of all roots, again and again, until a signal ends the process, which waits while a name is held. Returns where
 * none can be served any more: its user hears of that by other calls, and everything leaves at the end. */
void live_again_and_again(const struct roots *, const char *node, const struct live_options *);
