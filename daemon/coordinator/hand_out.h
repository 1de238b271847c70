/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Names of a directory that is being loaded go from the daemon that listed them to their homes. */

#include "home/home.h"
#include "peer/peers.h"
#include "shuntd.h"
#include "union/listing.h"

/* The load that they belong to. */
struct hand_out {
    struct dirid dir;
    uint64_t number; /* the directory's version when it began */
    uint16_t whole;  /* the member that gets all of them; 0: each its home */
};

/* Adds to expected[M] how many went to member M. 0; -ESTALE: a later load of the directory has begun; or a fatal -errno. */
int hand_out(struct shuntd *, const struct hand_out *, const struct listing *, uint32_t *expected);
/* How many names are in each leaf of this node's branch. 0 or a fatal -errno. */
int hand_out_leaf_counts(struct home_dir *, const struct listing *);
/* An item of kind RPC_LISTED: a name of a directory that is being loaded. 0 or a fatal -errno. */
int hand_out_take(struct shuntd *, uint16_t member, const struct frame_item *);
