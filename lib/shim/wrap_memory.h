/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

#include <stdbool.h>

/* syscall(2), of the calls that take memory away. Sets errno. */
long wrap_memory_call(long number, const long a[6], bool *known);
