/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Shards change their homes: daemons that joined become homes, homes that end, or have died, are homes no
 * more.
 *
 * The first of the homes publishes an epoch that says which members become homes and which cease to be (roles.h). Every daemon
 * that reads it knows the old homes and the new ones; what old homes have goes to the new ones (migration.h), or all begins
 * again (recovery.h). When every daemon has done its part and nothing is on its way to those that go, the first publishes that
 * it is done, and only then do they end. */

#include "rpc/collective.h"
#include "shuntd.h"

/* The founder is home of all. */
void homes_found(struct shuntd *);
/* Another epoch is in force. 0 or -errno. */
int homes_adopt(struct shuntd *);
/* Within a batch: goes on with what is under way. 0 or a fatal -errno. */
int homes_step(struct shuntd *);
bool homes_are_moving(const struct shuntd *);
/* Is there something to do for homes_step now, though nothing has come? */
bool homes_are_due(const struct shuntd *);
/* Some members have been set to SESSION_LOST: publishes that, and all begins again. 0 or a fatal -errno. */
int homes_lose(struct shuntd *);
/* At once: processes of this node may not rely on the index any more. */
void homes_publish_losses(struct shuntd *);
/* After all else of a batch: they may rely on what has arrived. */
void homes_publish(struct shuntd *);
/* This daemon wants to end: true once it may. Asked again with every batch. */
bool homes_may_leave(struct shuntd *);
collective_part homes_part_moved;
