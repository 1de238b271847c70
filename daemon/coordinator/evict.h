/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The index is a cache of the directories in use: SHUNT_INDEX_LIMIT bounds what this daemon has of them in memory. Above five
 * eighths of the limit directories are evicted, i.e. all daemons forget them; the next process that uses one has it loaded
 * again (load.h). Two eighths are for what is loaded meanwhile: the less of that is left, the faster they go. The last one is
 * for gaps in the file of the index, and for the daemon's own memory.
 *
 * Which one goes is decided by a clock (Corbató, A paging experiment with the Multics system, 1968). Processes read the index
 * in place, and nobody hears of it; so the hand takes the directory's record out of the index, and leaves its names: a process
 * that uses it then asks for it with LOAD, and is answered at once. That is the reference bit of a machine that has none
 * (Babaoglu and Joy, Converting a swap-based system to do paging in an architecture lacking page-referenced bits, 1981). One
 * that is asked for again is left in the index for longer each time: a process that lists it gets on, however slow it is. If
 * nobody has asked for it until the hand comes by again, its coordinator is asked to evict it. That asks all daemons: one
 * refuses as long as anything is under way there, or if it was used there within half the time for which the one that asks has
 * not used it; one whose processes may read it refuses, too, and takes the record out. When all agree, nobody can begin
 * anything in it before its coordinator answers LOAD, which waits until all have forgotten it. */

#include "rpc/collective.h"
#include "shuntd.h"

/* So that so many bytes more are within the limit, as far as there are directories that nobody uses. What is loaded elsewhere,
 * too, goes later. 0 or a fatal -errno. */
int evict_make_room(struct shuntd *, uint64_t bytes);
/* Evicts whatever nobody uses: there is no room at all. */
int evict_all_idle(struct shuntd *);
/* Once a batch. */
int evict_step(struct shuntd *);
/* When it is to look again though nothing happens: monotonic, UINT64_MAX: not before something does. */
uint64_t evict_due(struct shuntd *);
/* A directory is loaded with so many bytes of names: says so if it alone is above the limit, and counts one that comes back. */
void evict_note_load(struct shuntd *, const struct home_dir *, size_t names, uint64_t bytes);
/* Bytes that what it bounds takes now. */
uint64_t evict_used(struct shuntd *);
/* The limit in bytes, of SHUNT_INDEX_LIMIT or by the file system of the run directory. */
uint64_t evict_limit(uint64_t configured, const char *run_dir);
/* The recorder has not seen it since it was in use. One that is taken off the list is the taker's to free. */
struct evict_unrecorded {
    struct link link; /* of shuntd->unrecorded; the oldest are forgotten where there are many */
    struct dirid id;
    bool is_coordinated; /* here */
    char path[];
};
struct evict_unrecorded *evict_take_unrecorded(struct shuntd *);
collective_part evict_part_evict, evict_part_evicted;
