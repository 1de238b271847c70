/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "peer/homes.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define MOST 65

/* Random ids, as sessions have them, the same in every run. */
static void make_members(uint64_t members[MOST])
{
    uint64_t state = 42;
    for (int i = 0; i < MOST; i++)
        members[i] = state = state * 6364136223846793005u + 1442695040888963407u;
}

Test(homes, names_of_one_directory_spread_over_the_shards)
{
    static unsigned counts[HOMES_SHARDS];
    const struct dirid dir = {1234, 1714566896123456789};
    char name[32];
    for (unsigned i = 0; i < 40 * HOMES_SHARDS; i++) {
        int length = snprintf(name, sizeof name, "ckpt.%04u", i);
        uint32_t shard = homes_shard(dir, name, (size_t)length);
        cr_assert_lt(shard, HOMES_SHARDS);
        counts[shard]++;
    }
    for (unsigned i = 0; i < HOMES_SHARDS; i++)
        cr_assert(counts[i] > 5 && counts[i] < 100, "shard %u: %u of 40", i, counts[i]);
}

Test(homes, one_name_has_other_shards_in_other_directories)
{
    unsigned same = 0;
    for (uint64_t i = 0; i < 1000; i++)
        same +=
            homes_shard((struct dirid){i, 7}, "out", 3) == homes_shard((struct dirid){i + 1, 7}, "out", 3);
    cr_assert_lt(same, 10);
    same = 0;
    for (uint64_t i = 0; i < 1000; i++)
        same +=
            homes_shard((struct dirid){7, i}, "out", 3) == homes_shard((struct dirid){7, i + 1}, "out", 3);
    cr_assert_lt(same, 10);
}

Test(homes, one_member_is_home_of_all)
{
    const uint64_t alone = 0;
    for (uint32_t shard = 0; shard < HOMES_SHARDS; shard++)
        cr_assert_eq(homes_of_shard(shard, &alone, 1), 0);
}

Test(homes, shards_are_balanced)
{
    static const size_t sizes[] = {2, 3, 16, 64};
    uint64_t members[MOST];
    make_members(members);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        unsigned counts[MOST] = {0};
        for (uint32_t shard = 0; shard < HOMES_SHARDS; shard++)
            counts[homes_of_shard(shard, members, sizes[s])]++;
        for (size_t i = 0; i < sizes[s]; i++) {
            double share = (double)counts[i] * (double)sizes[s] / HOMES_SHARDS;
            cr_assert(share > 0.5 && share < 1.6, "member %zu of %zu: %u", i, sizes[s], counts[i]);
        }
    }
}

Test(homes, the_order_of_the_members_does_not_matter)
{
    uint64_t members[MOST], backwards[16];
    make_members(members);
    for (int i = 0; i < 16; i++)
        backwards[i] = members[15 - i];
    for (uint32_t shard = 0; shard < HOMES_SHARDS; shard++)
        cr_assert_eq(members[homes_of_shard(shard, members, 16)],
                     backwards[homes_of_shard(shard, backwards, 16)]);
}

Test(homes, who_joins_takes_its_share_and_nothing_else_moves)
{
    uint64_t members[MOST];
    unsigned moved = 0;
    make_members(members);
    for (uint32_t shard = 0; shard < HOMES_SHARDS; shard++) {
        size_t before = homes_of_shard(shard, members, 16), after = homes_of_shard(shard, members, 17);
        cr_assert(after == before || after == 16, "shard %u went from %zu to %zu", shard, before, after);
        moved += after != before;
    }
    cr_assert(moved > HOMES_SHARDS / 34 && moved < HOMES_SHARDS / 10, "%u moved", moved);
}

Test(homes, who_leaves_gives_its_shards_away_and_nothing_else_moves)
{
    uint64_t members[MOST], left[15];
    make_members(members);
    memcpy(left, members, 5 * sizeof *left);
    memcpy(left + 5, members + 6, 10 * sizeof *left);
    for (uint32_t shard = 0; shard < HOMES_SHARDS; shard++) {
        size_t before = homes_of_shard(shard, members, 16), after = homes_of_shard(shard, left, 15);
        cr_assert(before == 5 || members[before] == left[after], "shard %u", shard);
    }
}
