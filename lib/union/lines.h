/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Small text files of `key value` lines in a fixed order, as markers, stamps and epochs are. Pure; no
 * allocation.
 *
 * Every line ends with a newline, so a file that was cut is not taken for a whole one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "index/record.h"

struct lines {
    const char *at;
    size_t left;
};

/* A value stands in the text it was taken from and is not terminated. */
struct lines_value {
    const char *at;
    size_t length;
};

/* Takes the next line if its key is `key`. */
bool lines_take(struct lines *, const char *key, struct lines_value *);
/* Takes the next line if it is exactly this one. */
bool lines_expect(struct lines *, const char *line);

/* Reading a value: false if it is no such thing or does not fit. */
bool lines_number(struct lines_value, unsigned base, uint64_t *);
bool lines_dirid(struct lines_value, struct dirid *);
/* A word without spaces and control characters; may be empty. */
bool lines_word(struct lines_value, char *to, size_t size);
/* A path: any bytes but zero, a newline written as \n and a backslash as \\. */
bool lines_path(struct lines_value, char *to, size_t size);

/* Writing lines. */
void lines_add(struct text *, const char *key, const char *value);
void lines_add_number(struct text *, const char *key, uint64_t, unsigned base);
void lines_add_dirid(struct text *, const char *key, struct dirid);
void lines_add_path(struct text *, const char *key, const char *path);
