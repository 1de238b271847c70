/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Items about something that is still on its way here: they are taken once it has come (rpc_receive_deferred). */

#include "peer/peers.h"
#include "shuntd.h"

struct deferred_item {
    struct link link;
    uint16_t member;
    struct frame_item item;
    uint8_t bytes[];
};

/* Copies it. 0 or -ENOMEM. */
int rpc_defer(struct shuntd *, uint16_t member, const struct frame_item *);
void rpc_deferred_free(struct shuntd *);
