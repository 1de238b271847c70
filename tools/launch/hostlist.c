/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/hostlist.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 9

struct builder {
    char name[HOSTLIST_NAME_MAX + 1];
    size_t length, count;
    hostlist_each *each;
    void *context;
};

static bool hostlist_is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool hostlist_is_separator(char byte)
{
    return byte == ',' || byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static bool hostlist_is_of_name(char byte)
{
    return hostlist_is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '-' ||
           byte == '_' || byte == '.';
}

static int hostlist_append(struct builder *builder, const char *from, size_t length)
{
    if (length > HOSTLIST_NAME_MAX - builder->length)
        return -EBADMSG;
    for (size_t i = 0; i < length; i++)
        if (!hostlist_is_of_name(from[i]))
            return -EBADMSG;
    memcpy(builder->name + builder->length, from, length);
    builder->length += length;
    return 0;
}

/* A name that began with a dash would be an option of the command that it is handed to. */
static int hostlist_emit(struct builder *builder)
{
    if (builder->length == 0 || builder->name[0] == '-')
        return -EBADMSG;
    if (builder->count++ == HOSTLIST_MAX)
        return -E2BIG;
    builder->name[builder->length] = '\0';
    return builder->each(builder->context, builder->name);
}

static int hostlist_append_number(struct builder *builder, uint32_t number, size_t width)
{
    char digits[DIGITS_MAX + sizeof "4294967295"];
    int length = snprintf(digits, sizeof digits, "%0*" PRIu32, (int)width, number);
    return length < (int)sizeof digits ? hostlist_append(builder, digits, (size_t)length) : -EBADMSG;
}

static int hostlist_read_number(const char *from, const char *end, uint32_t *number)
{
    if (from == end || end - from > DIGITS_MAX)
        return -EBADMSG;
    for (*number = 0; from < end; from++) {
        if (!hostlist_is_digit(*from))
            return -EBADMSG;
        *number = *number * 10 + (uint32_t)(*from - '0');
    }
    return 0;
}

static int hostlist_expand_rest(struct builder *, const char *at, const char *end);

/* LOW or LOW-HIGH between `from` and `to`, each with what is after the bracket. The width of LOW counts. */
static int hostlist_expand_range(struct builder *builder, const char *from, const char *to, const char *rest, const char *end)
{
    const char *dash = memchr(from, '-', (size_t)(to - from)), *stop = dash ? dash : to;
    uint32_t low, high;
    int error = hostlist_read_number(from, stop, &low);
    high = low;
    if (error == 0 && dash)
        error = hostlist_read_number(dash + 1, to, &high);
    if (error == 0 && high < low)
        error = -EBADMSG;
    size_t before = builder->length;
    for (uint32_t number = low; error == 0 && number <= high; number++) {
        error = hostlist_append_number(builder, number, (size_t)(stop - from));
        if (error == 0)
            error = hostlist_expand_rest(builder, rest, end);
        builder->length = before;
    }
    return error;
}

static int hostlist_expand_bracket(struct builder *builder, const char *at, const char *end)
{
    const char *close = memchr(at, ']', (size_t)(end - at));
    int error = close ? 0 : -EBADMSG;
    for (bool more = true; error == 0 && more;) {
        const char *comma = memchr(at, ',', (size_t)(close - at));
        more = comma != NULL;
        error = hostlist_expand_range(builder, at, more ? comma : close, close + 1, end);
        at = more ? comma + 1 : close;
    }
    return error;
}

/* The name from `at` on: as it is up to the first bracket, and from there on for each number in it. */
static int hostlist_expand_rest(struct builder *builder, const char *at, const char *end)
{
    const char *open = memchr(at, '[', (size_t)(end - at)), *stop = open ? open : end;
    size_t before = builder->length;
    int error = hostlist_append(builder, at, (size_t)(stop - at));
    if (error == 0)
        error = open ? hostlist_expand_bracket(builder, open + 1, end) : hostlist_emit(builder);
    builder->length = before;
    return error;
}

/* Up to a separator that is in no bracket. */
static const char *hostlist_item_end(const char *at, const char *end)
{
    for (bool inside = false; at < end && (inside || !hostlist_is_separator(*at)); at++)
        inside = *at == '[' || (inside && *at != ']');
    return at;
}

static int hostlist_expand_list(struct builder *builder, const char *at, const char *end)
{
    int error = 0;
    while (error == 0 && at < end) {
        const char *stop = hostlist_item_end(at, end);
        const char *colon = memchr(at, ':', (size_t)(stop - at));
        if (stop > at)
            error = hostlist_expand_rest(builder, at, colon ? colon : stop);
        at = stop < end ? stop + 1 : end;
    }
    return error;
}

int hostlist_expand(const char *text, size_t length, hostlist_each *each, void *context)
{
    struct builder builder = {.each = each, .context = context};
    return length > 0 ? hostlist_expand_list(&builder, text, text + length) : 0;
}

int hostlist_lines(const char *text, size_t length, hostlist_each *each, void *context)
{
    struct builder builder = {.each = each, .context = context};
    const char *at = text, *end = text + length;
    int error = 0;
    while (error == 0 && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        const char *comment = memchr(at, '#', (size_t)(stop - at));
        const char *last = comment ? comment : stop;
        while (at < last && hostlist_is_separator(*at))
            at++;
        builder.count = 0;
        error = hostlist_expand_list(&builder, at, hostlist_item_end(at, last));
        at = newline ? newline + 1 : end;
    }
    return error;
}
