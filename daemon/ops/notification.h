/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Notifications: what daemons tell each other without being asked (rpc/RPC.md). */

#include "peer/peers.h"
#include "shuntd.h"

/* An item of kind RPC_NOTIFY. 0 or a fatal -errno. */
int notification_take(struct shuntd *, uint16_t member, const struct frame_item *);
/* What this home has to say goes out. 0 or a fatal -errno. */
int notification_tell_all(struct shuntd *);
