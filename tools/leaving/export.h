/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Makes a root a plain directory again: files are renamed out of the branches into the trunk, markers and
 * `.shunt` go.
 *
 * It replaces nothing and removes nothing but what is shunt's own and empty, or copied. Where the file system has no rename
 * that replaces nothing, a file that a program without shunt makes under the very name between the last look at it and the
 * rename is replaced, unless it is `careful`. Stopped at any point, it leaves a root that it can be run on again. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/command.h"

struct owners;

/* What was exported, added up over several roots. */
struct export_sum {
    size_t files, directories;
    size_t by_owners; /* of the files */
    size_t yielded;   /* roots that others of the same user go on with, or export */
    bool has_requests;
    uint64_t requests; /* that this host's client sent meanwhile, where the file system tells (client_requests.h) */
};

struct export_options {
    bool dry_run;                /* only say what would be done */
    bool copy;                   /* copy what no rename gets into its place (copy.h) */
    bool careful;                /* link and remove where the file system has no rename that replaces nothing */
    bool json;                   /* the result as an object */
    bool progress;               /* show it even if standard error is no terminal */
    bool quiet;                  /* say nothing of success */
    bool yields;                 /* leave a root to others of the same user that use it, or export it: that is no failure */
    const struct owners *owners; /* nodes that rename what they made (owner.h), or NULL */
    struct export_sum *sum;      /* gets what was exported added, or NULL */
};

/* The exit status: STATUS_OK, STATUS_FAILED after a complaint, or 128 and the signal that interrupted it. */
int export_root(const char *root, const struct export_options *);
