/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A cache line that another core had last takes a twentieth to a quarter of a microsecond to come. Code that knows early what
 * it will read or write calls for it, so that one line does not wait for the other. A hint: it changes nothing, and any address
 * may be given. A line that another core keeps reading is not to be prefetched for writing: that core takes it back. */

#include <stddef.h>

#define FETCH_LINE 64

static inline void cache_line_to_read(const void *from, size_t size)
{
    for (size_t at = 0; at < size; at += FETCH_LINE)
        __builtin_prefetch((const char *)from + at, 0);
}

/* So that nobody else has them. GCC takes PREFETCHW for granted on no x86_64: where a processor lacks it, it does nothing. */
static inline void cache_line_to_write(const void *from, size_t size)
{
    for (size_t at = 0; at < size; at += FETCH_LINE)
#if defined(__x86_64__)
        __asm__ volatile("prefetchw %0" : : "m"(((const char *)from)[at]));
#else
        __builtin_prefetch((const char *)from + at, 1);
#endif
}
