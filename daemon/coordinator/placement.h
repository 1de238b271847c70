/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Where new regular files of a directory go: the trunk, or a leaf of this node's branch. */

#include "home/home.h"
#include "rpc/collective.h"
#include "shuntd.h"

/* Do new regular files go to this node's branch? */
bool placement_dir_redirects(const struct shuntd *, const struct home_dir *);
/* From now on they stay in the trunk; those that are granted in a branch are taken back. 0 or a fatal -errno. */
int placement_pin(struct shuntd *, struct home_dir *, enum record_why);
/* Where a new regular file goes. 0, or -EAGAIN: a leaf must be made first, which is under way, or waits for the end of an rmdir
 * that has frozen the directory: dir->blocked waits for it; or a fatal -errno. */
int placement_choose(struct shuntd *, struct home_dir *, const char *name, size_t length, uint64_t client,
                     struct record_entry *place);
/* The same for a name that was predicted, for which none is made: *fresh would be its number. */
int placement_choose_prefetched(struct shuntd *, struct home_dir *, const char *name, size_t length, uint64_t client,
                                struct record_entry *place, uint32_t *fresh);

collective_part placement_part_record;
