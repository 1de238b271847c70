/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* From options to a daemon that serves, and back. */

#include <stdbool.h>

#include "shuntd.h"

/* Root, session, branch, run directory, index, channel, disk, home. On failure a sentence was printed and
 * start_undo is to be called. */
int start(struct shuntd *);
/* The only clean-up list: takes a half-started daemon. The log stays if it failed while it served: it says why. */
void start_undo(struct shuntd *, bool failed);
