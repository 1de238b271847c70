/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "cli/json.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

size_t json_utf8_length(const unsigned char *at)
{
    static const struct {
        unsigned char from, to, second_from, second_to, length;
    } forms[] = {
        {0x00, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (at[0] < forms[i].from || at[0] > forms[i].to)
            continue;
        if (forms[i].length > 1 && (at[1] < forms[i].second_from || at[1] > forms[i].second_to))
            return 0;
        for (size_t j = 2; j < forms[i].length; j++)
            if ((at[j] & 0xc0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

static void json_write_text(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    putchar('"');
    while (*at) {
        size_t length = json_utf8_length(at);
        if (length == 0 || *at < 0x20 || *at == 0x7f) {
            printf("\\u%04x", *at);
            length = 1;
        } else {
            if (*at == '"' || *at == '\\')
                putchar('\\');
            fwrite(at, 1, length, stdout);
        }
        at += length;
    }
    putchar('"');
}

static void json_break(const struct json *json)
{
    if (!json->flat)
        printf("\n%*s", (int)(2 * json->depth), "");
}

static void json_begin(struct json *json, const char *key)
{
    if (json->begun)
        fputs(json->flat ? ", " : ",", stdout);
    if (json->begun || json->depth > 0)
        json_break(json);
    json->begun = true;
    if (!key)
        return;
    json_write_text(key);
    fputs(": ", stdout);
}

void json_open(struct json *json, const char *key, char bracket)
{
    json_begin(json, key);
    putchar(bracket);
    json->depth++;
    json->begun = false;
}

void json_close(struct json *json, char bracket)
{
    json->depth--;
    if (json->begun)
        json_break(json);
    putchar(bracket);
    json->begun = true;
    if (json->depth == 0)
        putchar('\n');
}

void json_text(struct json *json, const char *key, const char *value)
{
    json_begin(json, key);
    if (value)
        json_write_text(value);
    else
        fputs("null", stdout);
}

void json_number(struct json *json, const char *key, int64_t value)
{
    json_begin(json, key);
    printf("%" PRId64, value);
}

void json_unsigned(struct json *json, const char *key, uint64_t value)
{
    json_begin(json, key);
    printf("%" PRIu64, value);
}

void json_real(struct json *json, const char *key, double value)
{
    json_begin(json, key);
    if (isfinite(value))
        printf("%.9g", value);
    else
        fputs("null", stdout);
}

void json_bool(struct json *json, const char *key, bool value)
{
    json_begin(json, key);
    fputs(value ? "true" : "false", stdout);
}
