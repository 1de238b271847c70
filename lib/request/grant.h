/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Private to this room: what a daemon has granted in a queue pair (channel.h), from the side of a process. Async-signal-safe,
 * from any thread. */

#include <stdbool.h>

#include "request/channel.h"

#define GRANT_PLACE_MAX (CHANNEL_GRANT_PLACE + 12)

/* Has the daemon granted the process to make that name (is_new), or to take it away? Looks at what comes before `first`, which
 * was taken last, first, and then at `first`. */
bool grant_has_name(const struct channel_qp *, unsigned first, struct dirid, const struct message_text *name, bool is_new);
/* The slot of the grant that is the answer to this request, in the same order: its number, -1: there is none. */
int grant_find(const struct channel_qp *, const struct message *, unsigned first);
/* Takes it, and copies the answer, whose place is written to `bytes` (of GRANT_PLACE_MAX): its word from then on, 0: it is
 * another's by now. */
uint64_t grant_take(struct channel_qp *, unsigned slot, const struct message *, struct message *answer, uint8_t *bytes);
/* Says how that went: true, and whether the daemon is to be woken; false: such an end takes a message. */
bool grant_end(struct channel_qp *, unsigned slot, uint64_t word, const struct message *, bool *calls);
