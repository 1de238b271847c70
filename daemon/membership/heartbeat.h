/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Heartbeats and the lease (lib/session/SESSION.md): while the session has other members, this daemon says on the
 * file system that it lives, and looks whether it is still a member. Each time it has, its processes may go
 * on for as long as a lease lasts, from before the heartbeat. Else they wait; a member that takes this node for lost
 * waits that long, too. */

#include "shuntd.h"

/* ns between two heartbeats, 0: it need not heartbeat, it is alone. */
uint64_t heartbeat_interval(const struct shuntd *);
/* The session has changed: a daemon that is not alone any more has a lease to begin with. */
void heartbeat_adopt(struct shuntd *);
/* Is it alone, and could not say so yet? */
bool heartbeat_is_to_end(const struct shuntd *);
/* Once a batch. 0, or a fatal -errno; -ESTALE: this daemon is no member any more. */
int heartbeat_step(struct shuntd *);
