/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "peer/homes.h"

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014): mixes every bit of the input into every bit of the
 * answer. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

uint32_t homes_shard(struct dirid dir, const char *name, size_t length)
{
    return (uint32_t)(mix(record_hash(name, length) ^ mix(dir.ino ^ mix(dir.birth))) % HOMES_SHARDS);
}

size_t homes_of_shard(uint32_t shard, const uint64_t *members, size_t count)
{
    size_t best = 0;
    uint64_t weight = mix(members[0] ^ mix(shard));
    for (size_t i = 1; i < count; i++) {
        uint64_t other = mix(members[i] ^ mix(shard));
        if (other > weight) {
            best = i;
            weight = other;
        }
    }
    return best;
}
