/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The first prefilter: what the text of a path says with respect to all roots, and at most where the working directory is.
 * Nearly every path of a program is foreign, and is recognised here, without a question to the file system. Async-signal-safe.
 */

#include <stdbool.h>

#include "path/path.h"
#include "shim/process.h"
#include "shim/scratch.h"

/* What needs no more than a look at the text: nearly every call of a program that works elsewhere. */
static inline bool prefilter_is_plainly_foreign(const char *path)
{
    for (unsigned i = 0; i < shim_state.process.head_count; i++)
        if (!path_is_plainly_foreign(shim_state.process.heads[i], path))
            return false;
    return true;
}

/* *scratch: NULL, or one; taken here if it is needed. */
enum path_verdict prefilter(struct scratch **scratch, int at, const char *path);
/* Is a root elsewhere in this mount namespace than its text says, or nowhere? */
static inline bool prefilter_some_is_hidden(void)
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        if (shim_state.roots[i].sight != NAMES_SEEN)
            return true;
    return false;
}
/* Of one that is not foreign by its text and leads to no root: -EIO if a root should be there, which is hidden; else 0. Uses
 * scratch->text[0]. */
int prefilter_hidden(struct scratch *, int at, const char *path);
/* The root that the text leads to or beneath, seen from `base` if it is relative; NULL: it leads to none. */
struct names_root *prefilter_root(const char *base, const char *path);
/* What the text says with respect to all roots, seen from `base` if it is relative. */
enum path_verdict prefilter_text(const char *base, const char *path);
