/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Private to this room. */

#include "home/home.h"

#define HOME_BUCKETS 16384

void home_names_free(struct home *);
void home_asking_free(struct link *asking);
int home_names_rest(struct home *, struct home_dir *);
void home_parked_free(struct link *waiting);

struct held;

struct home {
    struct home_dir *dirs[HOME_BUCKETS];
    struct flight *names[HOME_BUCKETS];   /* flights by (directory, name) */
    struct flight *numbers[HOME_BUCKETS]; /* ... by their numbers */
    struct link flights;                  /* all of them, the oldest first */
    unsigned flight_count;
    unsigned ahead_count; /* those that nobody has asked for yet */
    unsigned parked;      /* requests that wait, or were woken and not taken yet */
    unsigned waiting;     /* questions likewise */
    unsigned awaited;     /* flights for whose end somebody waits */
    uint64_t last_id;
    struct held *held[HOME_BUCKETS]; /* names that somebody is at work on, here or elsewhere */
    unsigned held_count;
    struct link questions; /* that waited for one of those, to be asked again */
    struct link news;
    struct link ready; /* collectives */
    uint64_t dir_count;
    struct link woken;     /* requests to be served again */
    struct link unwritten; /* directories whose trunk does not show their times yet */
    struct link untold;    /* ... whose times other daemons do not know */
};
