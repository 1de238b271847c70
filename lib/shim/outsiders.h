/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What programs without the shim have made in the trunk, or removed there: the kernel's core dumps, static programs,
 * containers, other users. The times of the trunk's directory tell. Where it has others than when it was read last (names.h, as
 * all processes of the node know), it is read, by the process that is about to list it, and the daemons hear of what is there
 * and not known, of what is known and not there, and of what is another file than is known. What the shim itself makes and
 * removes there changes the times, too: a listing after that reads the trunk as it would natively. */

#include "names/names.h"

/* At the begin of a listing: what was in the trunk before is known from then on, and what was not is not. `fd` is the
 * directory, open for reading; `stat` says its times (OUTSIDERS_MASK, with AT_STATX_FORCE_SYNC), which it had after `now`
 * (clock_files). 0 or -errno. */
#define OUTSIDERS_MASK (STATX_MTIME | STATX_CTIME)
int outsiders_see(struct names_root *, struct dirid, int fd, const struct statx *stat, uint64_t now);
