/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A command line that is put together word by word. Without memory it is marked `full`, stays so, and must
 * not be run: callers add freely and check once. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct arguments {
    size_t count, size;
    char **at; /* own copies; ends with NULL once there is a word */
    bool full;
};

void arguments_init(struct arguments *);
void arguments_finish(struct arguments *);
void arguments_add(struct arguments *, const char *);
void arguments_format(struct arguments *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arguments_add_all(struct arguments *, const struct arguments *);
/* All of them as a shell would read them, one word; to be freed; NULL: no memory. */
char *arguments_quoted(const struct arguments *);
