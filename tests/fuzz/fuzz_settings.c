/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Input: a file of settings. */

#include "config/settings_line.h"
#include "fuzz.h"

static bool is_blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\r';
}

/* A part of the line, that neither begins nor ends with a blank. */
static void check_part(const char *part, size_t size, const char *line, size_t length)
{
    fuzz_must(size > 0 && part >= line && part + size <= line + length);
    fuzz_must(!is_blank(part[0]) && !is_blank(part[size - 1]) && memchr(part, '\n', size) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *at = data, *end = data + size;
    while (at < end) {
        struct settings_line parsed;
        const uint8_t *begin = at;
        char *text = fuzz_line(&at, end);
        const size_t length = (size_t)(at - begin) - (at > begin && at[-1] == '\n');
        char *line = malloc(length > 0 ? length : 1); /* of exactly its size */
        memcpy(line, text, length);
        if (settings_line_parse(&parsed, line, length) == 1) {
            check_part(parsed.key, parsed.key_length, line, length);
            check_part(parsed.value, parsed.value_length, line, length);
            fuzz_must(memchr(parsed.key, '=', parsed.key_length) == NULL && parsed.key[0] != '#');
        }
        free(line);
        free(text);
    }
    return 0;
}
