/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* getdents64 for other wrappers: bytes, or -errno. */

#include <stddef.h>

long wrap_getdents64(int fd, void *buffer, size_t size);
