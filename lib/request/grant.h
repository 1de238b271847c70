/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Private to this room: what a daemon has offered in a lane (channel.h), from the side of a process. Async-signal-safe, from any
 * thread. */

#include <stdbool.h>

#include "request/channel.h"

#define OFFER_PLACE_MAX (ROAD_OFFER_PLACE + 12)

/* The slot of the offer that is the answer to this request, which looks at `first` first: its number, -1: there is none. */
int offer_find(const struct road_lane *, const struct message *, unsigned first);
/* Takes it, and copies the answer, whose place is written to `bytes` (of OFFER_PLACE_MAX): its word from then on, 0: it is
 * another's by now. */
uint64_t offer_take(struct road_lane *, unsigned slot, const struct message *, struct message *answer, uint8_t *bytes);
/* Says how that went: true, and whether the daemon is to be woken; false: such an end takes a message. */
bool offer_end(struct road_lane *, unsigned slot, uint64_t word, const struct message *, bool *calls);
