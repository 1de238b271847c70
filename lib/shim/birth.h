/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The birth of a name at its home: reserved, then confirmed or withdrawn. */

#include "shim/target.h"

/* 0: it is ours to make at real_at/real_path; -EAGAIN: there is one, target_look was done, begin again;
 * another -errno. `type` is the DT_ of what comes; flags: MESSAGE_TRUNK. */
int birth_reserve(struct target *, uint8_t type, uint16_t flags);
/* Not waited for. stat: with type, inode number and birth time. */
void birth_confirm(struct target *, const struct statx *);
void birth_withdraw(struct target *);
