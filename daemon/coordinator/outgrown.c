/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "coordinator/outgrown.h"

#include "base/hook.h"
#include "base/log.h"
#include "coordinator/delegation.h"
#include "coordinator/evict.h"
#include "home/home.h"

#define OUTGROWN_LARGE 8 /* a directory with that part of the limit is large */

struct outgrown {
    struct index *index;
    struct home_dir *dir; /* with the most names in the index, NULL: there is none */
    uint64_t names;
};

static void outgrown_compare(struct home_dir *dir, void *context)
{
    struct outgrown *largest = context;
    const uint64_t names = index_count_names(largest->index, dir->id);
    if (names <= largest->names)
        return;
    largest->names = names;
    largest->dir = dir;
}

/* One that is delegated is not spilled: it is given back, and read by all homes, each of which spills what it has. */
static int outgrown_move(struct shuntd *shuntd, struct home_dir *dir, uint64_t names, uint64_t bytes)
{
    if (dir->recalled)
        return 0;
    shuntd->counts.oversized++;
    log_line(
        "%s: its names, %llu by now, take %.1f of the %.1f MiB of the limit, and are looked up in a file from now on (raise "
        "SHUNT_INDEX_LIMIT)",
        dir->path, (unsigned long long)names, (double)bytes / (1 << 20), (double)shuntd->options.index_limit / (1 << 20));
    HOOK("outgrown");
    return dir->delegation != 0 ? delegation_give_up(shuntd, dir) : home_spill_now(shuntd->home, dir);
}

/* Where no directory has much of it, none is looked for until there is more. */
int outgrown_step(struct shuntd *shuntd)
{
    const uint64_t limit = shuntd->options.index_limit, used = limit > 0 ? evict_used(shuntd) : 0;
    struct outgrown largest = {.index = shuntd->index};
    struct index_size size;
    if (used <= limit / 4 * 3)
        shuntd->outgrown_next = 0;
    if (used <= limit / 4 * 3 || used < shuntd->outgrown_next || shuntd->stop != 0 || !home_can_spill(shuntd->home))
        return 0;
    shuntd->outgrown_next = used + limit / OUTGROWN_LARGE;
    home_dirs_each(shuntd->home, outgrown_compare, &largest);
    index_measure(shuntd->index, &size);
    const uint64_t bytes = size.entries > 0 ? size.bytes_used / size.entries * largest.names : 0;
    return bytes >= limit / OUTGROWN_LARGE ? outgrown_move(shuntd, largest.dir, largest.names, bytes) : 0;
}
