/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What may be wrong with a root, and what can be done about it. */

#include <stdbool.h>

#include "cli/json.h"
#include "tree/mirrors.h"
#include "tree/opened.h"

enum fsck_weight {
    FSCK_NOTE,       /* no fault */
    FSCK_REPAIRABLE, /* something that --repair, --restore or --delete sets right */
    FSCK_TROUBLE,    /* something that a person must look at */
};

struct fsck {
    bool repair, restore, discard, json;
    bool served; /* a session lives: what is unfinished may be being finished */
    struct union_root root;
    struct mirror_names known;
    struct opened opened;
    struct json writer;
    size_t directories, markers_bad;
    size_t notes, repairable, repaired, troubles;
    bool blind; /* not all of the trunk was seen: a mirror without a marker need not be an orphan */
};

/* One thing found, in words. `repaired`: it is set right already. */
void fsck_tell(struct fsck *, enum fsck_weight, bool repaired, const char *kind, const char *path, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Every directory: markers and conflicts. */
void fsck_trunk(struct fsck *);
/* Every mirror, once the trunk is known. */
void fsck_mirrors(struct fsck *);
/* Files of an orphan that the kernel refuses for what they are themselves: how many, and why the first one. */
struct fsck_refused {
    size_t count;
    int error;
    char name[NAME_MAX + 1];
};
/* Moves what an orphan holds to ROOT/shunt-restored/MIRROR/, or unlinks it, and removes the mirror. 0 or
 * -errno; if files were refused, all others are done. */
int fsck_restore(const struct union_root *, const struct mirror_found *, struct fsck_refused *);
int fsck_delete(const struct union_root *, const struct mirror_found *, struct fsck_refused *);
