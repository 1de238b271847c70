/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* That this member lives, for who looks from another host: the time of its file is set every now and then while the
 * session has other members (session/session.h). */

#include "shuntd.h"

/* To be called with each batch: beats if it is time. 0 or a fatal -errno. */
int beat_step(struct shuntd *);
/* ns between two beats, 0: there are none. */
uint64_t beat_interval(const struct shuntd *);
