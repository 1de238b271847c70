/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Who is home of what: a name, or a directory's own entry, falls into a shard, and each shard has one home, by
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
