/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Ends a thread's wait, although it may begin just after it was told: a signal comes that ends system calls and does nothing
 * else, to that thread alone and again until timer_delete. */

#include <time.h>

/* The signal's handler: once, before the others. 0 or -errno. */
int wake_init(void);
/* For the calling thread. 0 or -errno. */
int wake_create(timer_t *);
/* From now on. Async-signal-safe; in any thread. */
void wake_begin(timer_t);
