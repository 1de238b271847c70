/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What tests call, and glibc 2.31 does not have (tests/portability/debian11.sh). */

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

#if !__GLIBC_PREREQ(2, 32)
/* compare.py knows this one. */
static inline const char *strerrorname_np(int code)
{
    return code == EXDEV ? "EXDEV" : strerror(code);
}
#endif

#if !__GLIBC_PREREQ(2, 34)
static inline pid_t _Fork(void)
{
    return fork();
}

static inline int close_range(unsigned first, unsigned last, int flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

static inline void closefrom(int first)
{
    close_range((unsigned)first, ~0u, 0);
}

static inline int execveat(int at, const char *path, char *const arguments[], char *const environment[], int flags)
{
    return (int)syscall(SYS_execveat, at, path, arguments, environment, flags);
}
#endif
