/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A line of a configuration file: `KEY = value`. Pure; allocates nothing. */

#include <stddef.h>

struct settings_line {
    const char *key, *value; /* into the line; without blanks at both ends, neither is empty */
    size_t key_length, value_length;
};

/* 1: it is a setting; 0: it is blank, or a comment, which begins with #; -EINVAL: neither, as with other control characters
 * than blanks in it. The line has no newline at its end. */
int settings_line_parse(struct settings_line *, const char *line, size_t length);
