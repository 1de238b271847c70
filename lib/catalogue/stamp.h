/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* By what it is seen that a physical directory has the names it had. Pure: no I/O, no allocation, callable anywhere. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/record.h"

/* As statx says them; times are ns since 1970. */
struct catalogue_stamp {
    struct dirid id;
    int64_t mtime, ctime;
};

struct statx;
#define CATALOGUE_STAMP_MASK (STATX_INO | STATX_BTIME | STATX_MTIME | STATX_CTIME)
/* False: this file system's times prove nothing, since they are whole seconds: a clock that was set back may say the same
 * second again. Needs the mask in the request that filled it, with AT_STATX_FORCE_SYNC: a client of a network file system would
 * answer from what it remembers. */
bool catalogue_stamp_of(const struct statx *, struct catalogue_stamp *);
bool catalogue_stamp_equal(const struct catalogue_stamp *, const struct catalogue_stamp *);
/* Was the directory changed so long before `now` (ns since 1970) that nothing that changes it from now on can have the same
 * times? The clocks of nodes that write it may be an hour apart. */
bool catalogue_stamp_is_old(const struct catalogue_stamp *, int64_t now);
