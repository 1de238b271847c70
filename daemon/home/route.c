/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#define XXH_INLINE_ALL

#include "home/route.h"

#include <xxhash.h>

#include "session/session.h"

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

static bool route_is_gone(const struct session *session, uint16_t member)
{
    return member != 0 && !session_has(session, member);
}

/* A home is no member any more, or one that was to hand something over and has not. */
bool route_lacks_home(const struct route *route, const struct session *session)
{
    for (unsigned i = 0; i < RECORD_SHARDS; i++)
        if (route_is_gone(session, route->home[i]) || route_is_gone(session, route->from[i]))
            return true;
    return false;
}
