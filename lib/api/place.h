/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a path means in the union of its root: the directory, and the name in it. The kernel resolves the
 * directory; the name may be one that only a branch knows. Allocates; no state is shared; not for signal
 * handlers. */

#include "api/folder.h"
#include "catalogue/known.h"

struct place {
    bool rooted; /* root is filled */
    struct union_root root;
    struct known *known;            /* the source of its listings, NULL: there is none */
    struct folder folder;           /* the directory that holds it; or, with found NULL, it itself */
    const struct union_name *found; /* in folder.listing, or unlisted */
    struct union_name unlisted;     /* what may not be listed, but is there */
};

enum {
    PLACE_FOLLOW = 1, /* a symbolic link at the end is followed (one that leads into a root from outside always is) */
    PLACE_ENTER = 2,  /* a directory is entered: folder is it itself, found is NULL */
};

void place_init(struct place *);
/* May be called again and again: what is known of the last root and directory is used again. Relative to the
 * working directory. 0; -ENOTUNIQ: in no root; -EINVAL: in shunt's own .shunt; -ENOENT, -ENOTDIR, -ELOOP,
 * another -errno. */
int place_find(struct place *, const char *path, unsigned flags);
void place_finish(struct place *);
