/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* System calls that no function of the oldest libc makes, by number. They set errno. */

#include <stdbool.h>

#define WRAP_SYSCALL_NEWEST                                                                                                    \
    470 /* the newest number that is known here (Linux 6.19); they are the same on every machine from 424 on */

/* Extended attributes and file attributes, seen from a directory. */
long wrap_syscall_new_call(long number, const long a[6], bool *known);

/* A call that is newer than this library: it is refused (ENOSYS, as by a kernel without it) where one of its arguments is a
 * path of a file in a branch, or of a name under a root that is not there and might be made. Such an argument is the first, or
 * follows a directory's descriptor, as in all calls since Linux 2.6.16. Everything else goes to the kernel. */
long wrap_syscall_unknown_call(long number, const long a[6]);
