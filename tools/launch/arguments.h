/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A command line that is put together word by word. Without memory it is marked `full`, stays so, and must
 * not be run: callers add freely and check once. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct words {
    size_t count, size;
    char **at; /* own copies; ends with NULL once there is a word */
    bool full;
};

void words_init(struct words *);
void words_finish(struct words *);
void words_add(struct words *, const char *);
void words_format(struct words *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void words_add_all(struct words *, const struct words *);
/* All of them as a shell would read them, one word; to be freed; NULL: no memory. */
char *words_quoted(const struct words *);
