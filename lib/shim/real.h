/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The functions after the wrapper: what the application would have called without shunt (the next library's,
 * RTLD_NEXT, so that other interposers have their turn). Those that were called already. */

#include <dirent.h>
#include <dlfcn.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <linux/capability.h>
#include <locale.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <time.h>
#include <utime.h>
#include <wchar.h>

struct iovec;
struct utmp;
struct utmpx;

typedef int shim_filter(const struct dirent *);
typedef int shim_order(const struct dirent **, const struct dirent **);
typedef int shim_filter64(const struct dirent64 *);
typedef int shim_order64(const struct dirent64 **, const struct dirent64 **);
typedef int shim_fts_order(const FTSENT **, const FTSENT **);
typedef int shim_fts64_order(const FTSENT64 **, const FTSENT64 **);
typedef int shim_glob_error(const char *, int);

struct real {
#define SYMBOL(group, name, result, arguments) result(*name) arguments;
#include "shim/table.h"
#undef SYMBOL
};

extern struct real real;

/* One of them, by which it may be called; if this libc does not have it, what stands in for it
 * (shim/real_missing.h), or NULL. It is looked for when it is first wanted: async-signal-safe, callable from any
 * thread, in vfork children and before any constructor. */
#define REAL(NAME)                                                                                                             \
    (__builtin_expect(real.NAME != NULL, 1) ? real.NAME                                                                        \
                                            : (__typeof__(real.NAME))real_find(offsetof(struct real, NAME) / sizeof(void *)))
void *real_find(size_t index);

/* The wrapper of that name, and in *original what it wraps; NULL: there is none. Not in a signal handler. */
void *real_wrapper(const char *name, void **original);

/* Notes which libraries the program started with. Before there are other threads, and before others are
 * loaded. */
void real_start(void);
