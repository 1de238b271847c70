/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Does a path lead to a root? By its text, and where that says no, by where its directory really is, and where a symbolic link
 * at its end leads to. */

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define WHERE_ROOTS 64
#define WHERE_TEXT (2 * PATH_MAX)

/* The roots, separated by `:`, as SHUNT_ROOT has them, and what they are, as SHUNT_ROOT_ID has it (names/origin.h). */
void where_start(const char *roots, const char *ids);
/* The same text as at the start? */
bool where_are_the_roots(const char *roots);

/* The absolute text of a path that a thread uses, seen from the descriptor `at` of its own; "" is what is open there. What
 * /proc/self means to it is spelt out. Of a directory further down than a path can say it is that of one above it. 0, or
 * -errno: there is no such descriptor, or no room. */
int where_text(pid_t, int at, const char *path, char to[WHERE_TEXT]);

/* Of an absolute text. `follows`: a link at the end is followed. True also where it cannot be told, on another mount of a
 * root's file system, through which the root, or a part of it, may be seen, and where a link on the way leads to what the
 * process that follows it has open, or where it is (itself.h). By one thread at a time. */
bool where_is_in_a_root(const char *text, bool follows);
