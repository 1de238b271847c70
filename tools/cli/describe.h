/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a file is, in the words of ls and stat; outside of a root libc may be asked (users, groups, the time
 * zone). */

#include <stdint.h>
#include <stdio.h>

#include "api/folder.h"
#include "cli/json.h"

#define DESCRIBE_MODE 11
#define DESCRIBE_TIME 48
#define DESCRIBE_NAME 64

/* drwxr-xr-x */
void describe_mode(unsigned mode, char to[DESCRIBE_MODE]);
/* "directory", "regular file" ... */
const char *describe_type(unsigned mode);
/* A name, or the number where there is none. Valid until the next call. */
const char *describe_user(uint32_t uid);
const char *describe_group(uint32_t gid);
/* As ls -l has it: a time of day within half a year, else a year. */
void describe_time_short(const struct statx_timestamp *, char to[DESCRIBE_TIME]);
/* As stat has it, with nanoseconds and zone. */
void describe_time_long(const struct statx_timestamp *, char to[DESCRIBE_TIME]);
/* The branch of an entry, or NULL for the trunk. */
const char *describe_branch(const struct union_root *, const struct union_name *);
/* Where a link points; NULL: no link, or it cannot be read. */
const char *describe_target(const struct folder *, const struct union_name *, char to[PATH_MAX]);
/* The object that --json prints of one entry (NULL: of the directory itself), called `path`. 0, or the -errno
 * of its stat, and nothing printed. */
int describe_json(struct json *, const struct folder *, const struct union_root *, const struct union_name *, const char *path);
/* A line with an object of what the listing knows of an entry, called `path`: no stat. 0 or -errno, and nothing printed. */
int describe_json_name(const struct folder *, const struct union_root *, const struct union_name *, const char *path);
/* Control characters as `?`, if standard output is a terminal. */
void describe_print(const char *name);
/* ... whatever `to` is. */
void describe_print_for_terminal(const char *text, FILE *to);
/* How many columns describe_print takes. */
unsigned describe_width(const char *name);
