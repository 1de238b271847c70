/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the file system holds up at another node, whose daemon lives: what waits for it here waits for longer, as the processes
 * of that node do. A daemon that this one has waited for since the last tick is asked (RPC_HELLO); it answers how long ago it
 * saw that something was held up (RPC_WELCOME), at its own node or, as far as it was told, at one that it waits for itself.
 * That time is passed on, not when it was told: daemons that wait for each other do not keep it alive. */

#include "shuntd.h"

int remote_stall_create(struct shuntd *);
/* Takes one that has none. */
void remote_stall_free(struct shuntd *);
/* With each tick. 0 or a fatal -errno. */
int remote_stall_step(struct shuntd *);
/* How long ago something was seen to be held up, in ns and 1 more; 0: not lately. */
uint64_t remote_stall_told(const struct shuntd *);
/* What a member said of that. */
void remote_stall_hear(struct shuntd *, uint16_t member, uint64_t told);
