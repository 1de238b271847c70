/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a file that is about to be executed is. Async-signal-safe, callable in a vfork child. */

#include <stdbool.h>

/* Before a fork: a process that starts many programs forks first, and what one child was told, the next is not
 * told again. To have the memory from the start would take every process 20 us. */
void program_share(void);

#define PROGRAM_LINE_MAX 256  /* the kernel reads so much of a script */
#define PROGRAM_SCRIPTS_MAX 5 /* the kernel's depth of scripts that interpret scripts */

/* The interpreter that a script's first line names; false if there is none. */
bool program_interpreter(int at, const char *path, char line[PROGRAM_LINE_MAX + 1]);

/* Says on standard error, in one line, that the loader will not put the shim into this program (it is
 * statically linked, or for another C library or machine, or it changes its user), if the program is handed a
 * path under a root: in its arguments, or as its working directory. Said once for each program by a process
 * and those forked from it. An empty path is the descriptor `at` itself; interpreters are looked for from
 * `directory`, the program's working directory. */
void program_warn(int at, const char *path, int directory, char *const arguments[]);
