/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The system calls of wrap_mount.c by number; they set errno. */

#include <stdbool.h>

long wrap_mount_call(long number, const long a[6], bool *known);
