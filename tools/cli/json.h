/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Writes JSON, one piece after the other, to standard output. The writer places commas and indents; the
 * caller opens and closes. Keys are NULL inside an array. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
    unsigned depth;
    bool begun; /* the innermost has something in it */
    bool flat;  /* all on one line */
};

void json_open(struct json *, const char *key, char bracket);
void json_close(struct json *, char bracket);
/* How long the UTF-8 character is that begins here (RFC 3629: shortest form, no surrogates, up to U+10FFFF); 0: none. */
size_t json_utf8_length(const unsigned char *);
/* Bytes that are no UTF-8 are written as \u0080 to \u00ff, each by its own value. NULL: null. */
void json_text(struct json *, const char *key, const char *value);
void json_number(struct json *, const char *key, int64_t value);
void json_unsigned(struct json *, const char *key, uint64_t value);
/* What JSON has no number for: null. */
void json_real(struct json *, const char *key, double value);
void json_bool(struct json *, const char *key, bool value);
