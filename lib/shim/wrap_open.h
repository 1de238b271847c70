/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* openat for other doors: door_openat answers with errno. */

#include <sys/types.h>

/* Which names an open with these flags makes or follows: enum target_want. */
unsigned door_open_want(int flags);
int door_openat(int at, const char *path, int flags, mode_t mode);
