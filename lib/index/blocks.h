/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The file of an index as its writer takes blocks of it and gives them back. Private to this room.
 *
 * A block is a unit, twice that, four times and so on; what was given back is taken again, whole or halved until it fits.
 * The file grows as it is needed, and all of it that is used is allocated: on a full file system a page that is not there
 * would be a SIGBUS, in an application. Not thread-safe. */

#include "index/table.h"

struct blocks {
    struct table table; /* all that it may grow to */
    int fd;
    uint64_t there;   /* bytes that are allocated */
    uint64_t free;    /* bytes given back, in blocks of 4,096 and more */
    uint32_t given_back[TABLE_CLASSES]; /* a list for each class: the first; the next is in it. 0: none */
};

/* An empty file in that directory, instead of what is there, with a head of zeros. 0 or -errno. */
int blocks_create(struct blocks *, const char *directory, uint64_t most);
void blocks_destroy(struct blocks *);

unsigned blocks_class(uint64_t size);
/* A block of that class, whose bytes are whatever they are. 0, -ENOSPC, -EBADMSG. */
int blocks_take(struct blocks *, unsigned class, uint32_t *reference, void *block);
void blocks_give(struct blocks *, uint32_t reference, unsigned class);
/* Could so many bytes be taken, in blocks of 4,096? Makes the file larger if they are not there. */
bool blocks_have(struct blocks *, uint64_t bytes);
