/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A daemon that was started for users (request/users.h) and has none any more, nor a process that it serves, ends: all of them
 * were killed. One that `shunt start` started has no users, and goes on. */

#include "shuntd.h"

/* In each batch. 0 or a fatal -errno. */
int user_watch_step(struct shuntd *);
/* At the very end: a tool that waited to be a user starts another daemon. */
void user_watch_finish(void);
