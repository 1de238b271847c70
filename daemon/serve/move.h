/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Shards change their homes: daemons that joined become homes, homes that end hand over what they have.
 *
 * The first of the homes publishes an epoch that says who comes and who goes (enum session_part). Every daemon that
 * reads it knows the old homes and the new ones. An old home sends what it has in its shards to the new one:
 * directories, names, who holds them; forgets it; and says that this was all. Until then the new one answers nobody
 * about those shards. Questions that come to an old home are sent to the new one, by whoever asks or, where no
 * answer is wanted, by the old home itself. When every daemon has done its part and nothing is on its way to those
 * that go, the first publishes that it is done, and only then do they end.
 *
 * A home that has died hands nothing over: all begins anew. What homes knew is forgotten, since it is on disk, but for one
 * thing, what processes hold at this moment: each daemon tells it of its own processes to the homes of these names. Until
 * all have, no home answers, or takes a directory for known. What somebody said before, of a name that ended or of an
 * answer, says nothing any more; it can be told by its epoch. */

#include "peer/peers.h"
#include "shuntd.h"

struct cast;

/* The founder is home of all. */
void move_found(struct shuntd *);
/* Another epoch is in force. 0 or -errno. */
int move_adopt(struct shuntd *);
/* Within a batch: goes on with what is under way. 0 or a fatal -errno. */
int move_step(struct shuntd *);
/* At once: they may not any more. */
void move_publish_losses(struct shuntd *);
/* After the commit: processes of this node may rely on what has arrived. */
void move_publish(struct shuntd *);
bool move_is_under_way(const struct shuntd *);
/* Is there something to do for move_step now, without any news? */
bool move_is_due(const struct shuntd *);
/* Is this shard's content still on its way here? */
static inline bool move_is_awaited(const struct shuntd *shuntd, uint32_t shard)
{
    return shuntd->route.from[shard] != 0 || shuntd->route.untold_count > 0;
}
/* May a home not say yet that it knows all names of a directory? */
static inline bool move_is_gathering(const struct shuntd *shuntd)
{
    return shuntd->route.untold_count > 0;
}
/* Was that said before all began anew? */
static inline bool move_is_outdated(const struct shuntd *shuntd, uint32_t epoch)
{
    return epoch < shuntd->route.anew;
}
/* From those that are no members any more nothing is waited for. 0 or a fatal -errno. */
int move_gone(struct shuntd *);
/* Some members have been set to SESSION_LOST: publishes that, and all begins anew. 0 or a fatal -errno. */
int move_lose(struct shuntd *);
/* Is there a shard whose home is gone? Until the homes are others, nothing can be said of all names of a directory. */
bool move_has_lost(const struct shuntd *);
/* An item about such a shard: it is taken again then. 0 or -ENOMEM. */
int move_keep(struct shuntd *, uint16_t member, const struct frame_item *);
/* A part of what a shard holds. 0 or a fatal -errno. */
int move_take(struct shuntd *, uint16_t member, const struct frame_item *);
/* This daemon wants to end: true once it may. Asked again with every batch. */
bool move_may_leave(struct shuntd *);
void move_free(struct shuntd *);
