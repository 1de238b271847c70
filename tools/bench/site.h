/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Where a benchmark makes its files: in a directory of its own in the one that it was given, which is left as
 * it was. */

#include <limits.h>
#include <stdint.h>

#define SITE_NATIVE "native" /* within it: the directories of native runs */
#define SITE_ROOT "root"     /* and the root of those under shunt */
#define SITE_NAME "shunt-bench.XXXXXX"
#define SITE_TOP_MAX (PATH_MAX - 128) /* room for the longest name below it */

struct site {
    char top[PATH_MAX]; /* canonical; empty: nothing is made */
    const char *name;   /* its last part */
    char kind[32];      /* the file system, by name or number */
};

/* The canonical path of a directory where it does no harm to measure. 0, or -1 after a complaint: there is no
 * such directory, nobody may write there, or it is in a root of shunt. */
int site_check(const char *directory, char to[PATH_MAX]);
/* 0, or -1 after a complaint. */
int site_make(struct site *, const char *directory);
/* With all that is in it. 0, or -1 after a complaint; also if nothing was made. */
int site_remove(struct site *);
