/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Would shunt help? One sentence for people, from the ratios. Pure. */

#include <stddef.h>

#include "bench/results.h"

#define VERDICT_PART 112 /* what is said of one ratio */
#define VERDICT_MAX (2 * VERDICT_PART + 128)

struct verdict {
    const char *operation;
    struct spread costs; /* private / shared: what a shared directory costs; all 0: not measured */
    struct spread gives; /* shunt / shared: what shunt gives back; likewise */
    double with_export;  /* the median of gives with export counted in; 0: not measured */
};

/* Without a full stop; with the interval of the repetitions, and what to do where that does not decide. Empty if neither is
 * known. */
void verdict_words(const struct verdict *, char *to, size_t size);

/* Of creates if they were measured, else of the first operation that was; of the first size. */
void verdict_of(struct results *, struct verdict *);
