/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The errors of rename that shunt has to tell by itself, in the order in which the kernel makes its checks. What needs no table
 * (permissions, a directory that is not empty, a mount point) is left to the rename of the file system itself.
 * Async-signal-safe and thread-safe. */

#include "shim/operations.h"

/* Which of the two sides are under a root; BETWEEN: each under one of its own. */
enum rename_where { RENAME_INSIDE = 1, RENAME_OUT = 2, RENAME_IN = 4, RENAME_BETWEEN = 8 };

/* What is known of one of the two names. */
struct rename_name {
    int error;    /* 0: there is something; -ENOENT: nothing; or another error of the look at it */
    uint8_t type; /* DT_, or DT_UNKNOWN */
    bool slash;   /* a slash follows it */
};

struct rename {
    struct side *from, *to;
    unsigned flags; /* RENAME_EXCHANGE, or RENAME_NOREPLACE and RENAME_WHITEOUT; the last comes through no check */
    enum rename_where where;
    struct rename_name old, new; /* for rename_checks_found */
    struct dirid gone;           /* the directory that is replaced */
    bool are_two_files;          /* the disk says so, of what the index says is one */
};

/* What is decided by the two paths, before any name is looked up: 0 or -errno. To be asked once. */
int rename_checks_paths(struct rename *);
/* The names have been looked up (old, new): 0, go on, -errno, or TARGET_RETRY. To be asked again after each look. */
int rename_checks_found(struct rename *);
/* Are both the same name in the same directory? */
bool rename_checks_is_same_name(const struct rename *);
