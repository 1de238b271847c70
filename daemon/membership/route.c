/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "membership/route.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint16_t route_rendezvous(uint32_t shard, const uint16_t *members, size_t count)
{
    uint64_t highest = 0;
    uint16_t home = members[0];
    for (size_t i = 0; i < count; i++) {
        const uint32_t pair[2] = {shard, members[i]};
        uint64_t weight = XXH3_64bits(pair, sizeof pair);
        if (weight > highest) {
            highest = weight;
            home = members[i];
        }
    }
    return home;
}
