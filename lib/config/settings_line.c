/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "config/settings_line.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool settings_line_is_blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\r';
}

static void settings_line_trim(const char **text, size_t *length)
{
    while (*length > 0 && settings_line_is_blank((*text)[*length - 1]))
        --*length;
    while (*length > 0 && settings_line_is_blank(**text)) {
        ++*text;
        --*length;
    }
}

int settings_line_parse(struct settings_line *parsed, const char *line, size_t length)
{
    settings_line_trim(&line, &length);
    if (length == 0 || *line == '#')
        return 0;
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f)
            return -EINVAL;
    const char *equals = memchr(line, '=', length);
    if (equals == NULL)
        return -EINVAL;
    *parsed = (struct settings_line){line, equals + 1, (size_t)(equals - line), length - 1 - (size_t)(equals - line)};
    settings_line_trim(&parsed->key, &parsed->key_length);
    settings_line_trim(&parsed->value, &parsed->value_length);
    return parsed->key_length > 0 && parsed->value_length > 0 ? 1 : -EINVAL;
}
