/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Names of hosts from the texts in which batch systems and launchers write them down. Pure: no I/O, allocates
 * nothing, reads no byte beyond the length. */

#include <stddef.h>

#define HOSTLIST_NAME_MAX 255
#define HOSTLIST_MAX 65536 /* names of one text */

/* Is called with each name, terminated; ends the walk with an answer other than 0, which is then the walk's.
 */
typedef int hostlist_each(void *context, const char *name);

/* Names separated by commas or blanks, brackets multiplied out, `:SLOTS` after a name dropped: a[01-03,7]b
 * as Slurm and Flux write it, a:2,b as for mpirun. 0; -EBADMSG: it is no such text; -E2BIG: more than
 * HOSTLIST_MAX. */
int hostlist_expand(const char *text, size_t length, hostlist_each *, void *context);

/* A file of nodes: the first word of each line, `#` begins a comment. Answers as hostlist_expand. */
int hostlist_lines(const char *text, size_t length, hostlist_each *, void *context);
