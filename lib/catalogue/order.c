/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "catalogue/order.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define ORDER_FEW 64 /* are sorted as quickly by comparing them */

/* Names of one directory begin alike, as a rule, and differ in a few bytes after that: they are sorted by these as numbers
 * (least significant byte first, which keeps the order of the bytes before), and compared only where these are the same. */
struct order_key {
    uint64_t bytes; /* the first eight behind what all have in common, the first of them as the highest */
    uint64_t from;  /* where the name is */
};

static int order_compare(const void *a, const void *b)
{
    const struct catalogue_name *one = a, *other = b;
    return strcmp(one->name, other->name);
}

static bool order_is_done(const struct catalogue_name *names, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1].name, names[i].name) > 0)
            return false;
    return true;
}

/* So many bytes are the same at the beginning of all. */
static size_t order_prefix(const struct catalogue_name *names, size_t count)
{
    size_t length = strlen(names[0].name);
    for (size_t i = 1; i < count && length > 0; i++)
        if (strncmp(names[0].name, names[i].name, length) != 0)
            for (length = 0; names[0].name[length] == names[i].name[length]; length++)
                ;
    return length;
}

static uint64_t order_bytes(const char *text)
{
    uint64_t bytes = 0;
    memccpy(&bytes, text, '\0', sizeof bytes); /* the rest are zeros */
    return be64toh(bytes);
}

/* By one byte. */
static void order_pass(const struct order_key *from, struct order_key *to, size_t count, unsigned shift)
{
    size_t at[256] = {0}, next = 0;
    for (size_t i = 0; i < count; i++)
        at[from[i].bytes >> shift & 255]++;
    for (unsigned byte = 0; byte < 256; byte++) {
        const size_t begin = next;
        next += at[byte];
        at[byte] = begin;
    }
    for (size_t i = 0; i < count; i++)
        to[at[from[i].bytes >> shift & 255]++] = from[i];
}

/* Where they are at the end: in one half of `keys` or the other. */
static struct order_key *order_keys(const struct catalogue_name *names, size_t count, struct order_key *keys)
{
    const size_t prefix = order_prefix(names, count);
    struct order_key *from = keys, *to = keys + count;
    uint64_t differ = 0;
    for (size_t i = 0; i < count; i++) {
        keys[i] = (struct order_key){order_bytes(names[i].name + prefix), i};
        differ |= keys[i].bytes ^ keys[0].bytes;
    }
    for (unsigned shift = 0; shift < 64; shift += 8)
        if (differ >> shift & 255) {
            order_pass(from, to, count, shift);
            struct order_key *other = from;
            from = to;
            to = other;
        }
    return from;
}

/* Each name to its place, along the cycles of the permutation. */
static void order_move(struct catalogue_name *names, size_t count, struct order_key *keys)
{
    for (size_t i = 0; i < count; i++) {
        const struct catalogue_name first = names[i];
        size_t at = i;
        while (keys[at].from != i) {
            const size_t from = keys[at].from;
            names[at] = names[from];
            keys[at].from = at;
            at = from;
        }
        names[at] = first;
        keys[at].from = at;
    }
}

static void order_sort_equals(struct catalogue_name *names, size_t count, const struct order_key *keys)
{
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && keys[end].bytes == keys[begin].bytes; end++)
            ;
        if (end - begin > 1)
            qsort(names + begin, end - begin, sizeof *names, order_compare);
    }
}

void order_names(struct catalogue_name *names, size_t count)
{
    if (count < 2 || order_is_done(names, count))
        return;
    struct order_key *room = count > ORDER_FEW ? calloc(2 * count, sizeof *room) : NULL;
    if (room == NULL) {
        qsort(names, count, sizeof *names, order_compare);
        return;
    }
    struct order_key *keys = order_keys(names, count, room);
    order_move(names, count, keys);
    order_sort_equals(names, count, keys);
    free(room);
}
