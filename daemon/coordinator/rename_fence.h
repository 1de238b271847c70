/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Directories on their way to another name. Processes remember which directory words lead to (lib/shim/parent_cache.h): before
 * one is renamed all daemons of the session raise their roads' `places`, so that nobody goes by that, and behind it
 * again. A daemon that is gone renames nothing any more. */

#include "shuntd.h"

struct flight;

/* The two flights of a rename are held: all processes are told, then `then` is called with `from`, unless that has ended
 * meanwhile. 0 or a fatal -errno. */
int moving_begin(struct shuntd *, struct flight *from, int (*then)(struct shuntd *, struct flight *from));
/* It has ended, one way or the other. */
int moving_end(struct shuntd *, const struct flight *from);
/* A daemon is a member no more. */
void moving_gone(struct shuntd *, uint16_t member);
void moving_free(struct shuntd *);
