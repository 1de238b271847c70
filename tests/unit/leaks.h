/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A test's process ends without the check for lost memory that a sanitizer makes at an exit: it is made here.
 */

#include <stdlib.h>

int __lsan_do_recoverable_leak_check(void) __attribute__((weak)); /* NULL where nothing is sanitized */

/* For the end of a test: what it allocated is free again, or can still be reached. Criterion counts no
 * assertion at that point, but a process that crashes. */
static inline void leaks_none(void)
{
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check() != 0)
        abort();
}
