/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Private to this room. */

#include <limits.h>

#include "home/home.h"

#define HOME_BUCKETS 16384

void home_names_free(struct home *);
void home_asking_free(struct link *asking);
int home_names_wake(struct home *, struct home_dir *);
void home_blocked_free(struct link *waiting);

struct claim;

struct home {
    struct home_uses uses;
    struct home_dir *dirs[HOME_BUCKETS];
    struct operation *names[HOME_BUCKETS];   /* operations by (directory, name) */
    struct operation *numbers[HOME_BUCKETS]; /* ... by their numbers */
    struct link operations;                  /* all of them, the oldest first */
    unsigned operation_count;
    unsigned prefetched_count; /* those that nobody has asked for yet */
    unsigned blocked;          /* requests that wait, or were woken and not taken yet */
    unsigned waiting;          /* questions likewise */
    unsigned awaited;          /* operations for whose end somebody waits */
    uint64_t last_id;
    struct claim *claims[HOME_BUCKETS]; /* names that somebody is at work on, here or elsewhere */
    unsigned claim_count;
    struct link questions; /* that waited for one of those, to be asked again */
    struct link notifications;
    struct link ready_collectives; /* collectives */
    uint64_t dir_count;
    uint64_t forgotten;         /* how often directories were, or may have been, forgotten everywhere */
    struct link clock;          /* directories, in the order in which the hand came by last */
    struct link ready_requests; /* requests to be served again */
    struct link unwritten;      /* directories whose trunk does not show their times yet */
    struct link unannounced;    /* ... whose times other daemons do not know */
    uint64_t spill_above;       /* bytes of a directory in the index; 0: never */
    uint64_t spill_number;      /* of the last one, for its name */
    struct link spilled;        /* directories whose names are not in the index */
    char spill_base[PATH_MAX];
};
