/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The file of an index as its writer takes blocks of it and gives them back. Private to this room.
 *
 * A block is a unit, twice that, four times and so on, and begins at a multiple of its size: a larger one is halved until it
 * fits, and two halves that were given back are one again (the buddy system: Knowlton, CACM 1965). The file grows as it is
 * needed, and all of it that is used is allocated: on a full file system a page that is not there would be a SIGBUS, in an
 * application. Not thread-safe. */

#include "index/table.h"

struct blocks {
    struct table table; /* all that it may grow to */
    int fd;
    uint64_t there;                     /* bytes that are allocated */
    uint64_t end;                       /* ... that were ever used; the head tells readers */
    uint64_t free;                      /* ... that were given back */
    uint32_t given_back[TABLE_CLASSES]; /* a list for each class: the first; 0: none */
    uint8_t *classes; /* for each unit that is allocated 1 + the class of what was given back and begins there, else 0 */
};

/* An empty file in that directory, instead of what is there, with a head of zeros. 0 or -errno. */
int blocks_create(struct blocks *, const char *directory, uint64_t most);
void blocks_destroy(struct blocks *);

unsigned blocks_class(uint64_t size);
/* A block of that class, whose bytes are whatever they are. 0, -ENOSPC, -EBADMSG. */
int blocks_take(struct blocks *, unsigned class, uint32_t *reference, void *block);
void blocks_give(struct blocks *, uint32_t reference, unsigned class);
/* Is there a block of that class, and so many bytes next to? Makes the file larger if they are not there. */
bool blocks_have(struct blocks *, unsigned class, uint64_t bytes);
