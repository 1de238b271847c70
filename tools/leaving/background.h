/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* --export background: a process beside a command, or beside the daemons of a node, that takes files to the trunk (live.h). It
 * ends with the one that began it. */

#include <stdint.h>
#include <sys/types.h>

#include "cli/roots.h"

struct background {
    pid_t pid; /* 0: there is none */
    int fd;    /* its pidfd */
};

/* Once the daemons serve. Where no process can be made, everything is exported at the end. `quiet`: as of live_options. */
void background_begin(struct background *, const struct roots *, const char *node, uint64_t quiet);
/* Before they are stopped; returns when it has ended. Takes one that was never begun, or is zero. */
void background_end(struct background *);
