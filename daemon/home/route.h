/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Which member is the home of what: a name, or a directory's own entry, falls into a shard, and each shard has one home, by
 * rendezvous hashing over the members of the session that are homes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/record.h"

struct session;

/* As this daemon knows it (membership/homes.h). */
struct route {
    uint16_t home[RECORD_SHARDS];
    uint16_t
        from[RECORD_SHARDS];    /* of those that are here: the member that their content is still to come from; 0: it is here */
    uint16_t to[RECORD_SHARDS]; /* of those that were here: the member that it is still to go to; 0: none */
    uint32_t own, missing;      /* how many are here; and are awaited, or members untold */
    uint32_t epoch;             /* of the session's, in which homes changed last */
    uint32_t recovery_epoch;    /* ... and in which all began again */
    bool unreported[UINT16_MAX + 1]; /* members that have not said yet what their processes hold since then */
    uint32_t unreported_count;
    bool hands_over; /* something is still to go */
    bool settled;    /* all homes are members, and are to stay: until the session is another */
    bool dirty;      /* processes of this node do not know yet */
};

/* The home of a shard among these members (count > 0): the one whose hash with it is the highest, so that a
 * member that comes or goes moves its own shards alone (Thaler and Ravishankar, 1998). Pure. */
uint16_t route_rendezvous(uint32_t shard, const uint16_t *members, size_t count);

static inline uint16_t route_of_name(const struct route *route, struct dirid dir, const char *name, size_t length)
{
    return route->home[record_shard(dir, record_hash(name, length))];
}
static inline uint16_t route_of_dir(const struct route *route, struct dirid dir)
{
    return route->home[record_shard(dir, 0)];
}
/* Is this daemon home of everything? */
static inline bool route_is_sole(const struct route *route)
{
    return route->own == RECORD_SHARDS;
}
/* Is this shard's content still on its way here? */
static inline bool route_is_awaited(const struct route *route, uint32_t shard)
{
    return route->from[shard] != 0 || route->unreported_count > 0;
}

/* Is this daemon, the member `me`, home of it, and is all of it here? */
static inline bool route_is_here(const struct route *route, uint16_t me, uint32_t shard)
{
    return route->home[shard] == me && !route_is_awaited(route, shard);
}

/* May a home not say yet that it knows all names of a directory? */
static inline bool route_is_gathering(const struct route *route)
{
    return route->unreported_count > 0;
}

/* Was that said before all began again? */
static inline bool route_is_outdated(const struct route *route, uint32_t epoch)
{
    return epoch < route->recovery_epoch;
}
/* Is there a shard whose home is no member any more, or one whose content is still to come from such a member? Until the homes
 * are others, nothing can be said of all names of a directory. */
bool route_lacks_home(const struct route *, const struct session *);
