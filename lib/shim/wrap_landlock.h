/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

#include <stdbool.h>

/* syscall(2), of the call that names what a program is to keep of the file system (Landlock). Sets errno. */
long wrap_landlock_call(long number, const long a[6], bool *known);
