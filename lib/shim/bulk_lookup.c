/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/bulk_lookup.h"

#include "shim/state.h"
#include "shim/target.h"

/* A process that looks at names of a directory that no process of this node has seen, one after the other, is told of many at
 * once: in the order of a listing (ls -l, find, tar, rsync) of those that come next, after so many in that order, which by
 * chance one in 40,000 would be. In any other order (each rank reads what its neighbour has written) of some, after so many
 * that it had to ask for, then of those after them, so that of a directory of some thousand names it soon knows all. Where that
 * is a small part of them, and where all were told before, it is after twice as many each time, so that it is few questions
 * where it does not help. All these are one program's affair, and threads that are in each other's way there ask for each name.
 */
#define IN_ORDER 8
#define ENOUGH_MAX (1u << 20)
#define SMALL_PART (UINT64_MAX / 16)
#define ORDER(FIELD) __atomic_load_n(&shim_state.bulk_lookup.FIELD, __ATOMIC_RELAXED)
#define SET_ORDER(FIELD, TO) __atomic_store_n(&shim_state.bulk_lookup.FIELD, TO, __ATOMIC_RELAXED)

static void bulk_lookup_begin_order(uint64_t dir)
{
    SET_ORDER(dir, dir);
    SET_ORDER(last, UINT64_MAX);
    SET_ORDER(prefetched, 0);
    SET_ORDER(count, 0);
    SET_ORDER(asked, 0);
    SET_ORDER(enough, IN_ORDER);
}

/* From which hash on; UINT64_MAX: nothing is predicted. *in_order: since they are. */
static uint64_t bulk_lookup_from(uint64_t dir, uint64_t hash, bool *in_order)
{
    if (ORDER(dir) != dir)
        bulk_lookup_begin_order(dir);
    const uint32_t count = ORDER(last) < hash ? ORDER(count) + 1 : 0, asked = ORDER(asked) + 1;
    const uint64_t prefetched = ORDER(prefetched);
    SET_ORDER(last, hash);
    SET_ORDER(count, count);
    SET_ORDER(asked, asked);
    *in_order = count == IN_ORDER || (count > IN_ORDER && hash > prefetched);
    if (*in_order)
        return hash;
    return asked < ORDER(enough) ? UINT64_MAX : prefetched == UINT64_MAX ? 0 : prefetched;
}

bool bulk_lookup(struct target *t)
{
    const uint64_t dir = record_sum(&t->dir, sizeof t->dir, 0), hash = record_hash(t->name, t->length);
    bool in_order;
    const uint64_t from = bulk_lookup_from(dir, hash, &in_order);
    const uint32_t enough = ORDER(enough);
    if (from == UINT64_MAX)
        return false;
    const uint64_t until = names_bulk_lookup(t->root, t->dir, t->found.dir.mirror, from, &t->scratch->answer);
    if (!in_order && enough < ENOUGH_MAX && (until == UINT64_MAX || until - from < SMALL_PART))
        SET_ORDER(enough, 2 * enough);
    SET_ORDER(asked, 0);
    SET_ORDER(prefetched, until);
    return true;
}
