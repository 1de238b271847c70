/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a tree looks like at one time: an entry a name, with the line that is told of it, and what tells
 * whether it was touched since. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define SIGHT_MAX 1024

struct sight_entry {
    char *path;
    char *line;
    mode_t mode;
    ino_t inode;
    struct timespec modified, changed;
    long attributes;
};

struct sight {
    size_t count;
    bool has_fine_times; /* parts of a second: else it is chance whether a touch shows */
    struct sight_entry entry[SIGHT_MAX];
};

enum sight_change { SIGHT_SAME, SIGHT_TOUCHED /* its line is the same */, SIGHT_DIFFERENT };

/* Looks at the root and at what is outside it, through libc. */
void sight_take(struct sight *);
void sight_free(struct sight *);
enum sight_change sight_change(const struct sight *before, const struct sight_entry *);
bool sight_changed(const struct sight *before, const struct sight *after, const char *path);
bool sight_same_line(const struct sight *, const struct sight *, const char *path);
bool sight_same_lines(const struct sight *, const struct sight *);
/* Prints the lines that only one of them has; true if there are any. */
bool sight_tell_difference(const struct sight *before, const struct sight *after);
