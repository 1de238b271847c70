/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Where a call is made: names of the fixture, and the bases from which they are spelled. */

#include <stdbool.h>
#include <stddef.h>

enum name_trait {
    NAME_CORE = 1,     /* tried from every base, also by calls that change something */
    NAME_PAIR = 2,     /* one of a pair, for the calls that take two */
    NAME_FIFO = 4,     /* leads to a FIFO */
    NAME_AS_IS = 8,    /* the text is the whole path: nothing can be put before it */
    NAME_OUTSIDE = 16, /* beneath the directory outside the root */
    NAME_FILL = 32,    /* slashes fill the path up to `fill` bytes */
};

struct name {
    const char *label;
    const char *text;
    unsigned traits;
    size_t fill;
};

extern const struct name names[];
extern const size_t names_count;
extern char name_255[256], name_255_new[256], name_256[257], name_256_below[259];

enum place_base {
    BASE_ABSOLUTE,
    BASE_INSIDE,   /* the working directory is that of the fixture */
    BASE_ABOVE,    /* the working directory holds the root */
    BASE_BELOW,    /* the working directory is fixture's dir/ */
    BASE_LINK,     /* through a link outside that points at the root */
    BASE_LINK_CWD, /* the working directory was reached through that link */
    BASE_DIRFD,    /* a descriptor of the fixture's directory */
    BASE_PROC,     /* /proc/self/fd/N of that descriptor */
    BASE_NO_FD,    /* a descriptor that is not open */
    BASE_FILE_FD,  /* a descriptor of a regular file */
    BASE_ABSOLUTE_NO_FD,
    BASES
};

struct place {
    int at;
    const char *path;
    char text[8192];
};

/* The words a case is told with. */
const char *base_label(enum place_base);
bool place_exists(enum place_base, const struct name *, bool takes_descriptor);
/* Sets the working directory too; place_leave gives everything back. */
void place_enter(struct place *, enum place_base, const struct name *);
void place_leave(struct place *);
