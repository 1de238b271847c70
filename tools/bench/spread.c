/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/spread.h"

#include <stdlib.h>

static int spread_compare(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return one < other ? -1 : one > other;
}

struct spread spread_of(double *values, size_t count)
{
    if (count == 0)
        return (struct spread){0};
    qsort(values, count, sizeof *values, spread_compare);
    double middle = count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    return (struct spread){middle, values[0], values[count - 1]};
}
