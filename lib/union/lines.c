/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/lines.h"

static bool lines_take_line(struct lines *lines, struct lines_value *line)
{
    const char *end = lines->left > 0 ? memchr(lines->at, '\n', lines->left) : NULL;
    if (!end)
        return false;
    *line = (struct lines_value){.at = lines->at, .length = (size_t)(end - lines->at)};
    lines->left -= line->length + 1;
    lines->at = end + 1;
    return true;
}

bool lines_take(struct lines *lines, const char *key, struct lines_value *value)
{
    size_t length = strlen(key);
    if (!lines_take_line(lines, value) || value->length <= length || memcmp(value->at, key, length) != 0 ||
        value->at[length] != ' ')
        return false;
    value->at += length + 1;
    value->length -= length + 1;
    return true;
}

bool lines_expect(struct lines *lines, const char *expected)
{
    struct lines_value line;
    return lines_take_line(lines, &line) && line.length == strlen(expected) && memcmp(line.at, expected, line.length) == 0;
}

static unsigned lines_digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a' + 10);
    return 255;
}

bool lines_number(struct lines_value value, unsigned base, uint64_t *number)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < value.length; i++) {
        unsigned digit = lines_digit_of(value.at[i]);
        if (digit >= base || __builtin_mul_overflow(sum, base, &sum) || __builtin_add_overflow(sum, digit, &sum))
            return false;
    }
    *number = sum;
    return value.length > 0;
}

bool lines_dirid(struct lines_value value, struct dirid *id)
{
    const char *space = value.length > 0 ? memchr(value.at, ' ', value.length) : NULL;
    if (!space)
        return false;
    struct lines_value ino = {value.at, (size_t)(space - value.at)};
    struct lines_value birth = {space + 1, value.length - ino.length - 1};
    return lines_number(ino, 10, &id->ino) && lines_number(birth, 10, &id->birth);
}

bool lines_word(struct lines_value value, char *to, size_t size)
{
    if (value.length >= size)
        return false;
    for (size_t i = 0; i < value.length; i++)
        if ((unsigned char)value.at[i] <= ' ' || value.at[i] == 0x7f)
            return false;
    memcpy(to, value.at, value.length);
    to[value.length] = '\0';
    return true;
}

bool lines_path(struct lines_value value, char *to, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < value.length; i++) {
        char c = value.at[i];
        if (c == '\\') {
            if (++i == value.length || (value.at[i] != 'n' && value.at[i] != '\\'))
                return false;
            c = value.at[i] == 'n' ? '\n' : '\\';
        }
        if (c == '\0' || length + 1 >= size)
            return false;
        to[length++] = c;
    }
    to[length] = '\0';
    return length > 0;
}

void lines_add(struct text *t, const char *key, const char *value)
{
    text_add(t, key);
    text_add(t, " ");
    text_add(t, value);
    text_add(t, "\n");
}

void lines_add_number(struct text *t, const char *key, uint64_t number, unsigned base)
{
    text_add(t, key);
    text_add(t, " ");
    text_number(t, number, base);
    text_add(t, "\n");
}

void lines_add_dirid(struct text *t, const char *key, struct dirid id)
{
    text_add(t, key);
    text_add(t, " ");
    text_number(t, id.ino, 10);
    text_add(t, " ");
    text_number(t, id.birth, 10);
    text_add(t, "\n");
}

void lines_add_path(struct text *t, const char *key, const char *path)
{
    text_add(t, key);
    text_add(t, " ");
    for (; *path; path++) {
        if (*path == '\n')
            text_add(t, "\\n");
        else if (*path == '\\')
            text_add(t, "\\\\");
        else
            text_bytes(t, path, 1);
    }
    text_add(t, "\n");
}
