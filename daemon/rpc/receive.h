/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Items from other daemons: each goes to the room that it is for. */

#include "peer/peers.h"
#include "rpc/peer_rpc.h"
#include "shuntd.h"

/* Serves an item: 0, or a fatal -errno. What is malformed is counted (rpc_malformed) and dropped. */
typedef int rpc_take_item(struct shuntd *, uint16_t member, const struct frame_item *);
struct rpc_handlers {
    rpc_take_item *take[RPC_KINDS];           /* NULL: malformed */
    int (*session_is_newer)(struct shuntd *); /* a frame names an epoch that this daemon has not read */
};

/* Serves what other daemons sent: 0, or a fatal -errno. */
int rpc_receive_all(struct shuntd *);
/* Those that were deferred are taken. 0 or a fatal -errno. */
int rpc_receive_deferred(struct shuntd *);
int rpc_malformed(struct shuntd *);
