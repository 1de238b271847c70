/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The functions behind the door: what the application would have called without shunt (the next library's,
 * RTLD_NEXT, so that other interposers have their turn). */

#include <dirent.h>
#include <dlfcn.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <utime.h>

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

/* Fills `real`, once, before any other constructor runs. A function that this libc does not have is NULL. */
void real_resolve(void);
