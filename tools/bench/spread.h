/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The middle of some measurements, and how far they lie apart. Pure. */

#include <stddef.h>

struct spread {
    double median, lowest, highest; /* all 0 of nothing */
};

/* Sorts the values. */
struct spread spread_of(double *values, size_t count);
