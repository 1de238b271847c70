/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What an export has the owners of branches do (owner.h): one after the other in a directory, and in several directories at
 * once. A directory with work for owners is put aside; the export goes on with others, and lists it again when they have
 * answered. */

#include "api/folder.h"
#include "leaving/owner.h"

#define EXPORT_OWNERS_LEAST 16 /* files of a branch in a directory that are worth an order */
#define EXPORT_OWNERS_ASIDE 64 /* directories aside at once; each has a descriptor */

struct export_aside {
    struct export_aside *next;
    struct folder folder; /* open, not listed */
    char mirror[RECORD_MIRROR_MAX];
    struct statx before; /* these two are the caller's */
    bool loosened;
    size_t at_work;        /* the number of the branch whose owner works; 0: none does */
    size_t waiting;        /* branches whose owners are to be ordered */
    unsigned char *states; /* of each branch by its number; owned */
};

struct export_owners {
    const struct owners *owners; /* NULL: there are none */
    uint64_t epoch;              /* of the claim */
    size_t branch_count;
    int *numbers;               /* of each branch's owner by the branch's number; owned */
    struct export_aside *first; /* the one that was put aside first */
    size_t count, working;      /* directories aside; owners at work */
    uint64_t files, looked;     /* renamed by owners, of all directories, without what is under way */
    uint64_t underway;          /* files that owners at work have renamed by what they said last */
    uint64_t turned;            /* when it was looked after them last */
};

/* Once the root is held. Without memory there are no owners. */
void export_owners_init(struct export_owners *, const struct owners *, const struct union_root *);
/* Nothing is aside. */
void export_owners_finish(struct export_owners *);
/* Takes over the listed folder, and closes its listing, if there is work for owners; else, or if there is no room, NULL. */
struct export_aside *export_owners_put_aside(struct export_owners *, const struct union_root *, struct folder *);
/* Takes in answers, and gives the next orders. Waits so long for an answer if there is none. */
void export_owners_turn(struct export_owners *, const struct union_root *, int milliseconds);
/* Is it time for that? Cheap enough for every file. */
bool export_owners_are_due(const struct export_owners *);
/* No more orders are given. */
void export_owners_cancel(struct export_owners *);
/* One that no owner is to be at any more, which is then the caller's; NULL: there is none yet. */
struct export_aside *export_owners_take(struct export_owners *);
/* Takes NULL. */
void export_aside_destroy(struct export_aside *);
/* May files of that name's branch have been renamed by an owner that was given up? */
bool export_aside_was_ordered(const struct export_aside *, const struct union_name *);
