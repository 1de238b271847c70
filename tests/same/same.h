/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the parts of the program share: cases, and how one is run and told.
 *
 * A case is a call at a place. It prints a line `CALL BASE:NAME = RESULT DETAILS`, and, if the call can
 * change something, the lines by which the tree then differs from the fixture. Nothing that two runs cannot
 * agree on is printed: no time of day, no inode number, no size or order of a directory. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "place.h"

enum call_trait {
    CALL_CHANGES = 1, /* may change the tree: tell what changed, rebuild the fixture */
    CALL_AT = 2,      /* takes a directory's descriptor */
    CALL_WAITS = 4,   /* would wait for the other end of a FIFO */
    CALL_NO_NULL = 8, /* libc itself reads the text: NULL is a crash there too */
};

struct call {
    const char *name;
    unsigned traits;
    long (*run)(const struct place *, long argument); /* 0 or more, or -1 and errno */
    long argument;
};

/* Adds to the details of the case at hand; keeps errno. */
void detail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for bytes of a file or a name: what is not printable is shown as \xx. */
void detail_bytes(const void *, size_t);
/* Details of a stat that gave `result`, which is returned. */
long detail_stat(long result, const struct stat *);

/* Is the next case one of those to be run, and by this process? To be asked once for each of the many. */
bool case_is_due(void);
/* The two questions of it, for a story of several cases that are wanted or not together. */
bool case_is_wanted(void);
bool case_is_mine(void);
/* A case whose work is done: its line, and what it changed. `call` and `where` are its first two words. */
void case_told(const char *call, const char *where, long result, int error, bool changes);
/* The last case of a story whose other ones changed the tree without a word about it: what they left. */
void case_left(const char *call, const char *where);

/* A call at a base and a name, if they go together. */
void case_run(const struct call *, enum place_base, const struct name *);
/* Every call at every name that it can take: all names by absolute path, and from every other base all names
 * (`everywhere`) or the core of them. */
void cases_run(const struct call *, size_t count, bool everywhere);
#define CASES(CALLS, EVERYWHERE) cases_run(CALLS, sizeof(CALLS) / sizeof *(CALLS), EVERYWHERE)

void part_open(void);
void part_stdio(void);
void part_stat(void);
void part_names(void);
void part_pairs(void);
void part_meta(void);
void part_times(void);
void part_xattr(void);
void part_inherit(void);
void part_directory(void);
void part_canon(void);
void part_deep(void);
void part_temp(void);
void part_exec(const char *plugin);
void part_raw(void);
void part_glob(void);
void part_walk(void);
void part_fts(void);
void part_doors(void);
void part_spawn(void);
void part_notify(void);
void part_locks(void);
void part_semantics(void);
void part_kinds(void);
void part_order(void);
void part_aliases(void);
void part_follow(void);
void part_refused(void);
void part_users(void);
void part_wild(void);
void part_stories(void);
