/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The order of a listing. Thread-safe; not for signal handlers (it allocates). */

#include "union/listing.h"

/* By name (strcmp), then branch, then leaf. Names that come in few sorted runs, as those of a physical directory do from a
 * catalogue, are merged: as many comparisons as there are names for each doubling of the runs. Allocates, if it can, as much
 * memory as the names take. */
void sort_names(struct union_name *, size_t count);
