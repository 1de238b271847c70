/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/placement.h"

#include <criterion/criterion.h>

#include "index/record.h"

Test(placement, branch_always_redirects)
{
    for (uint32_t nodes = 0; nodes < 20; nodes++)
        cr_assert(placement_redirects(CONFIG_BRANCH, nodes, 0));
}

Test(placement, a_private_directory_stays_in_the_trunk)
{
    cr_assert_not(placement_redirects(CONFIG_AUTO, 0, UINT64_MAX));
    cr_assert_not(placement_redirects(CONFIG_AUTO, 1, UINT64_MAX));
}

Test(placement, a_shared_directory_is_redirected_after_so_many_creates)
{
    static const struct {
        uint32_t nodes;
        uint64_t creates; /* the first count that redirects */
    } cases[] = {{2, 16}, {3, 10}, {4, 8}, {8, 4}, {15, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_not(placement_redirects(CONFIG_AUTO, cases[i].nodes, cases[i].creates - 1), "%u nodes", cases[i].nodes);
        cr_assert(placement_redirects(CONFIG_AUTO, cases[i].nodes, cases[i].creates), "%u nodes", cases[i].nodes);
    }
    cr_assert(placement_redirects(CONFIG_AUTO, 16, 0), "at once");
    cr_assert(placement_redirects(CONFIG_AUTO, UINT32_MAX, 0));
}

Test(placement, names_are_spread_over_the_open_leaves)
{
    unsigned counts[4] = {0};
    for (unsigned i = 0; i < 4000; i++) {
        uint32_t leaf = placement_leaf(record_hash((const char *)&i, sizeof i), 4);
        cr_assert_lt(leaf, 4);
        counts[leaf]++;
    }
    for (int i = 0; i < 4; i++)
        cr_assert(counts[i] > 880 && counts[i] < 1120, "leaf %d: %u", i, counts[i]);
    cr_assert_eq(placement_leaf(UINT64_MAX, 1), 0);
}

Test(placement, full_leaves)
{
    cr_assert_eq(placement_leaf_full(0x47504653), 1000, "GPFS");
    cr_assert_eq(placement_leaf_full(0x0bd00bd0), 50000, "Lustre");
    cr_assert_eq(placement_leaf_full(0), 50000);
}
