/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What stands in for a name of shim/table.h that no library of this process has: stat and its like, which are inline in the
 * headers before glibc 2.33 and call __xstat, what came with 2.34, and what an allocator needs before it is found. The shim
 * exports the names all the same, hands stat to glob, and a program may ask whether they are there. */

#include <stddef.h>

/* The function, which makes the system call; NULL if nothing stands in for this name. INDEX is its place in struct real.
 * Async-signal-safe, callable before relocation; so are the functions. */
void *real_missing(size_t index);
