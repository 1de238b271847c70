/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Which member is the home of what: a name, or a directory's own entry, falls into a shard, and each shard has one home, by
 * rendezvous hashing over the members of the session that are homes. */

#include <stdbool.h>

#include "shuntd.h"

/* The home of a shard among these members (count > 0): the one whose hash with it is the highest, so that a
 * member that comes or goes moves its own shards alone (Thaler and Ravishankar, 1998). Pure. */
uint16_t route_rendezvous(uint32_t shard, const uint16_t *members, size_t count);

static inline uint16_t route_of_name(const struct shuntd *shuntd, struct dirid dir, const char *name, size_t length)
{
    return shuntd->route.home[record_shard(dir, record_hash(name, length))];
}
static inline uint16_t route_of_dir(const struct shuntd *shuntd, struct dirid dir)
{
    return shuntd->route.home[record_shard(dir, 0)];
}
/* Is this daemon home of everything? */
static inline bool route_is_sole(const struct shuntd *shuntd)
{
    return shuntd->route.own == RECORD_SHARDS;
}
/* Is this shard's content still on its way here? */
static inline bool route_is_awaited(const struct shuntd *shuntd, uint32_t shard)
{
    return shuntd->route.from[shard] != 0 || shuntd->route.unreported_count > 0;
}

/* Is this daemon home of it, and is all of it here? */
static inline bool route_is_here(const struct shuntd *shuntd, uint32_t shard)
{
    return shuntd->route.home[shard] == shuntd->me.number && !route_is_awaited(shuntd, shard);
}

/* May a home not say yet that it knows all names of a directory? */
static inline bool route_is_gathering(const struct shuntd *shuntd)
{
    return shuntd->route.unreported_count > 0;
}

/* Was that said before all began again? */
static inline bool route_is_outdated(const struct shuntd *shuntd, uint32_t epoch)
{
    return epoch < shuntd->route.recovery_epoch;
}
/* Is there a shard whose home is no member any more, or one whose content is still to come from such a member? Until the homes
 * are others, nothing can be said of all names of a directory. */
bool route_lacks_home(const struct shuntd *);
