/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

#include <stdbool.h>

/* syscall(2), of the one that sets a handler: noted, and always left to the caller (not known). */
long wrap_signal_call(long number, const long a[6], bool *known);
