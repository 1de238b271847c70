/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Memory that is kept for when there is no more: what was begun is ended with it, and nothing new is begun before it
 * could be put by again. One for the process, since the allocation that fails (memory.c) knows nothing of shuntd. From
 * any thread. */

#include <stdbool.h>

/* Is it there? Puts it by, if that is possible. */
bool oom_reserve_is_there(void);
/* Gives it to the next allocation. False: that is done already. */
bool oom_reserve_release(void);
