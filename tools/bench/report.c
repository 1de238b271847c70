/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/report.h"

const struct report_pair report_pairs[REPORT_PAIRS] = {
    {PLAN_PRIVATE, PLAN_SHARED}, {PLAN_SHUNT, PLAN_SHARED}, {PLAN_SHUNT_PRIVATE, PLAN_PRIVATE}};

bool report_compares(const struct plan *plan, size_t pair)
{
    return plan_has(plan->configurations, report_pairs[pair].one) && plan_has(plan->configurations, report_pairs[pair].other);
}
