/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* openat for other wrappers: wrap_openat answers with errno, and as syscall does, so that this may end with it. */

#include <sys/types.h>

/* Which names an open with these flags makes or follows: enum target_want. */
unsigned wrap_open_want(int flags);
long wrap_openat(int at, const char *path, int flags, mode_t mode);
