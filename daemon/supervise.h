/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The supervisor: the daemon's parent, which starts it again when it crashes. It holds nothing and knows nothing of the
 * root, so that nothing can bring it down with the daemon. SIGTERM and SIGINT it passes on; after those, and after
 * SHUNTD_NO_MORE, which the daemon sends that ends by itself, it starts nobody again. */

#include <stdbool.h>

#include "shuntd.h"

/* Forks. Returns in the daemon, each one again, with the descriptor that background_ready is to write to. The supervisor itself
 * does not return: it ends when the daemon ended on purpose, when the first one could not start, or when several in a row
 * lived too briefly. `ready` is told how the first one did.
 * The log of a daemon that is not started again is kept.
 * *former: the run directory of the daemon before, NULL in the first one. */
int supervise(int ready, const char **former, const struct shuntd_options *);
