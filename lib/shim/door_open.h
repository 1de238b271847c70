/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* openat for other doors: with errno. */

#include <sys/types.h>

int door_openat(int at, const char *path, int flags, mode_t mode);
