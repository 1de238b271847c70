/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The results on standard output. */

#include "bench/conductor.h"
#include "bench/results.h"

struct report {
    struct results *results;
    const struct conductor *conductor; /* the ranks that took part */
    const struct site *site;
};

/* What is compared with what. */
struct report_pair {
    unsigned one, other;
};
#define REPORT_PAIRS 3
extern const struct report_pair report_pairs[REPORT_PAIRS];
/* Were both measured? */
bool report_compares(const struct plan *, size_t pair);

void report_text(const struct report *);
void report_json(const struct report *);
void report_csv(const struct report *);
