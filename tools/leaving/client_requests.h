/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* How many requests this host's client of a file system has sent to its server since it was mounted, for whatever process. Only
 * NFS tells users that (/proc/self/mountstats): CephFS, Lustre and GPFS tell the superuser, a FUSE client nobody. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Of the mount that a canonical path is in. False: it is not told. */
bool client_requests_read(const char *path, uint64_t *count);
/* The same from the text of such a file. */
bool client_requests_parse(FILE *, const char *path, uint64_t *count);
