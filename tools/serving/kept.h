/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The daemons that a process has started and keeps: they are its children, and it ends with them. */

#include <stddef.h>
#include <sys/types.h>

#include "cli/roots.h"
#include "cli/signal_wait.h"

/* A batch system that ends a job tells all of its processes. The programs may still write then, so daemons that are kept go on
 * after a first signal, but not for longer than this. */
#define KEPT_GRACE 15 /* seconds */

struct kept {
    size_t count; /* of those that live */
    pid_t daemons[ROOTS_MAX];
};

/* Before they are started: what their starters leave behind becomes a child of this process. */
void kept_adopt(void);
/* Once they serve. */
void kept_find(struct kept *);
/* Those that have ended are no longer counted. */
void kept_reap(struct kept *);
/* Ends all, and says of each that does not. */
void kept_end(struct kept *, struct signal_wait *, const char *node);
