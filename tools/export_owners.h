/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What an export has the owners of branches do (owner.h), one after the other in a directory. */

#include "api/folder.h"
#include "owner.h"

enum export_owners_state {
    EXPORT_OWNERS_NOT,  /* the export's own */
    EXPORT_OWNERS_SOME, /* of that branch's files some may have been renamed */
    EXPORT_OWNERS_ALL,
};

struct export_owners {
    const struct owners *owners; /* NULL: there are none */
    uint64_t epoch;              /* of the claim */
    unsigned char *states;       /* an enum export_owners_state for each branch of the directory by its number; owned */
    uint64_t files, looked;      /* renamed by owners, of all directories */
};

/* Once the root is held. Without memory there are no owners. */
void export_owners_init(struct export_owners *, const struct owners *, const struct union_root *);
void export_owners_finish(struct export_owners *);
/* All that is to leave a directory by its owners; states says what is left. `shows` as that of struct owners. */
void export_owners_empty(struct export_owners *, const struct union_root *, const struct folder *,
                         void (*shows)(void *to, uint64_t files), void *to);
/* Of a name's branch. */
enum export_owners_state export_owners_state(const struct export_owners *, const struct union_name *);
