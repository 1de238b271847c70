/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Private to this room. */

#include "home/home.h"

#define HOME_BUCKETS 16384

void home_shares_free(struct home_dir *);

struct home {
    struct home_dir *dirs[HOME_BUCKETS];
    struct flight *names[HOME_BUCKETS]; /* flights by (directory, name) */
    struct link flights;                /* all of them, the oldest first */
    unsigned flight_count;
    unsigned parked; /* requests that wait, or were woken and not taken yet */
    uint64_t dir_count;
    struct link woken;   /* requests to be served again */
    struct link changed; /* directories whose trunk does not show their times yet */
};
