/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "home/route.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void route_homes(uint16_t to[RECORD_SHARDS], const uint16_t *members, size_t count)
{
    for (uint32_t i = 0; i < RECORD_SHARDS; i++)
        to[i] = route_rendezvous(i, members, count);
}

Test(route, each_home_has_its_part)
{
    uint16_t members[64], home[RECORD_SHARDS];
    unsigned has[65] = {0};
    for (uint16_t i = 0; i < 64; i++)
        members[i] = i + 1;
    route_homes(home, members, 64);
    for (uint32_t i = 0; i < RECORD_SHARDS; i++)
        has[home[i]]++;
    for (unsigned i = 1; i <= 64; i++)
        cr_assert(has[i] >= 4 && has[i] <= 40, "member %u is home of %u shards", i, has[i]);
}

Test(route, who_comes_and_goes_moves_its_own_alone)
{
    const uint16_t all[] = {1, 4, 9, 300}, without[] = {1, 4, 300}, other_order[] = {300, 9, 4, 1};
    uint16_t before[RECORD_SHARDS], after[RECORD_SHARDS], same[RECORD_SHARDS];
    route_homes(before, all, 4);
    route_homes(after, without, 3);
    route_homes(same, other_order, 4);
    for (uint32_t i = 0; i < RECORD_SHARDS; i++)
        cr_assert(before[i] == 9 ? after[i] != 9 : after[i] == before[i]);
    cr_assert_eq(memcmp(before, same, sizeof before), 0, "all daemons see the same");
}

Test(route, the_names_of_a_directory_are_spread)
{
    unsigned has[RECORD_SHARDS] = {0}, used = 0;
    char name[16];
    for (int i = 0; i < 4096; i++) {
        int length = snprintf(name, sizeof name, "ckpt.%04d", i);
        uint32_t shard = record_shard((struct dirid){7, 8}, record_hash(name, (size_t)length));
        cr_assert_lt(shard, RECORD_SHARDS);
        used += has[shard]++ == 0;
    }
    cr_assert_gt(used, RECORD_SHARDS * 9 / 10);
    cr_assert_neq(record_shard((struct dirid){7, 8}, 0), record_shard((struct dirid){7, 9}, 0));
}
