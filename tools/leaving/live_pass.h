/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Once through what a node has in its branches: which directories are due, and their files, one after the other. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/progress.h"
#include "leaving/live.h"
#include "shim/promote.h"
#include "union/layout.h"

#define LIVE_BRANCHES 16 /* more are for the end */
#define LIVE_DONE 4096   /* a power of two */

struct live {
    const struct live_options *options;
    bool tells; /* of each file that cannot be moved, once */
    struct names_root *root;
    const char *node;
    char branches[PATH_MAX];                       /* the directory of them all */
    uint64_t branches_time;                        /* when one came or went, as they were read */
    char branch[LIVE_BRANCHES][LAYOUT_BRANCH_MAX]; /* the node's: after a crash it has another one */
    unsigned branch_count;
    struct promote_quiet order;
    struct progress progress;
    uint64_t began;
    size_t files, directories;
    size_t in_use, unknown; /* directories that stay as they are */
    size_t refused;         /* files */
    /* Mirrors in which nothing is to be done, by a hash of the name: when a name last came or went in them then. */
    uint64_t done[LIVE_DONE];
    /* The directory that is being emptied. */
    char path[PATH_MAX];
    int trunk;
    bool has_turn; /* what changes the trunk directory is no other node that moves files there */
    bool is_again; /* what is in the leaf was gone through before */
    unsigned batch;
    uint64_t batch_began;
};

/* In ns. */
void live_pause(uint64_t ns);
/* 0; -EINTR: it was told to stop (stopping.h); another -errno: nothing more can be moved. */
int live_pass(struct live *);
