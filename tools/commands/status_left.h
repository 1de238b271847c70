/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What `shunt export` has to do in a root that no session holds. */

#include "union/listing.h"

struct status_left {
    size_t files;   /* in branches */
    double seconds; /* an export from this host would take, about */
};

/* Reads all leaves. 0 or -errno: some could not be read. */
int status_left_look(struct status_left *, const struct union_root *);
void status_left_print(const struct status_left *);
