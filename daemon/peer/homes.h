/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Who decides a name. Every (directory, name) hashes to one of a fixed number of shards, and rendezvous
 * hashing gives each shard to one member of the session: its home. A session of one member is home of every
 * name. Pure. */

#include <stddef.h>
#include <stdint.h>

#include "index/record.h"

#define HOMES_SHARDS 4096

uint32_t homes_shard(struct dirid, const char *name, size_t length);
/* The position of the member that is home of a shard; `members` are their random ids, at least one. */
size_t homes_of_shard(uint32_t shard, const uint64_t *members, size_t count);
