/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Heartbeats and the lease (lib/session/SESSION.md): this daemon says on the file system that it lives, also while it is
 * alone in its session, and looks whether it is still a member. Each time it has, its processes may go
 * on for as long as a lease lasts, from before the heartbeat. Else they wait; a member that takes this node for lost
 * waits that long, too. */

#include "shuntd.h"

/* ns between two heartbeats. */
uint64_t heartbeat_interval(const struct shuntd *);
/* It is a member: it has a lease to begin with. */
void heartbeat_adopt(struct shuntd *);
/* Once a batch. 0, or a fatal -errno; -ESTALE: this daemon is no member any more. */
int heartbeat_step(struct shuntd *);
/* The file system holds up what it was to do for the session or for requests: processes and requests that wait are to wait for
 * longer. To be called again and again, by any thread; a daemon that stands still itself does not. */
void heartbeat_note_stall(struct shuntd *);
