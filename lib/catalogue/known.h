/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The catalogues of a root as a source of listings (union/listing.h): the live one of this node's daemon, if it is the daemon
 * that asks, and the copies that ended sessions left in the branches. A directory's names are taken from whichever proves them.
 *
 * The copies are opened when a listing asks for the first time; each is read as a whole then. Once half of the
 * descriptors of this process are taken, no more are opened: what others have is read from disk. Thread-safe. */

#include "catalogue/catalogue.h"
#include "union/listing.h"

struct known;

struct known_counts {
    uint64_t copies;         /* that were opened */
    uint64_t taken, unknown; /* directories whose names were taken from a catalogue, and directories that no catalogue proved */
    uint64_t names;          /* that were taken */
};

enum {
    KNOWN_FIRST = 1,    /* for a process that reads many directories once: ask before each is read */
    KNOWN_PREFETCH = 2, /* ... and all those below some: the client is told of many with one request (disk_has_server) */
};
/* `live` is NULL or outlives this, as `root` does. 0 or -ENOMEM. */
int known_create(struct known **, const struct union_root *root, struct catalogue *live, unsigned flags);
/* Takes NULL. No listing may be under way. */
void known_destroy(struct known *);
const struct listing_source *known_source(const struct known *);
/* Does any of them prove a directory, or a marker, that has this stamp now? */
bool known_proves(struct known *, const struct catalogue_stamp *now, uint16_t branch);
bool known_proves_marker(struct known *, const struct catalogue_stamp *now);
void known_count(struct known *, struct known_counts *);
