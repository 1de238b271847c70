/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Every directory of a root or of a part of it, each before those in it, in the order of names; no symbolic
 * links, not `.shunt`, nor what is in another root. What a step does to files is no matter to the walk. */

#include "api/folder.h"

enum {
    WALK_ONE_DEVICE = 1, /* leave out directories of another device than the root's */
    WALK_SETTLE = 2,     /* list with LISTING_SETTLE */
};

struct walk {
    struct union_root *root;
    struct known *known;                 /* the source of its listings while it is walked, NULL: there is none */
    const struct listing_source *source; /* before */
    int root_fd;
    unsigned flags;
    struct folder folder;
    struct statx before; /* of the directory, as it was before it was listed */
    bool partial;        /* something was left out: of another device, or what is in a directory that may not be read
                          */
    char **steps;        /* paths yet to be walked, the next one last */
    size_t count, room;
};

/* `from` is relative to the root; "." is all of it. Until walk_finish directories of that root are listed from catalogues that
 * prove them. 0 or -errno. */
int walk_init(struct walk *, struct union_root *, const char *from, unsigned flags);
/* 1 with the next one listed in walk->folder, 0 at the end. -errno: walk->folder.path could not be opened (fd
 * -1) or not listed; the walk goes on with the next call, and where a bad marker (-EBADMSG) is why, also into
 * what is below. -EMULTIHOP: it is a root of its own. */
int walk_next(struct walk *);
void walk_finish(struct walk *);
