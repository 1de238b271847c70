/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Text built piece by piece in memory of the caller's: no allocation, no overrun, no locale.
 *
 * A text that did not fit is marked `full` and stays so; what is in it is cut, always terminated, and must
 * not be used as a path. Callers append freely and check once, with text_ok. Async-signal-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
    char *at;      /* the caller's memory */
    size_t size;   /* of it, the terminating zero included */
    size_t length; /* without the terminating zero */
    bool full;     /* something did not fit */
};

static inline void text_init(struct text *t, char *at, size_t size)
{
    *t = (struct text){.at = at, .size = size, .full = size == 0};
    if (size > 0)
        at[0] = '\0';
}

static inline void text_bytes(struct text *t, const char *from, size_t length)
{
    if (t->full || length >= t->size - t->length) {
        t->full = true;
        return;
    }
    memcpy(t->at + t->length, from, length);
    t->length += length;
    t->at[t->length] = '\0';
}

static inline void text_add(struct text *t, const char *from)
{
    text_bytes(t, from, strlen(from));
}

/* `base`: 8 to 16. */
static inline void text_number(struct text *t, uint64_t number, unsigned base)
{
    char digits[22]; /* 2^64 - 1 has as many, to the base of 8 */
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0);
    text_bytes(t, digits + at, sizeof digits - at);
}

/* The kernel's name for what that descriptor of the calling thread is, which may have a table of its own. */
static inline void text_descriptor(struct text *t, int fd)
{
    text_add(t, "/proc/thread-self/fd/");
    text_number(t, (uint64_t)(unsigned)fd, 10);
}

/* Where in that text the word is first, which is not empty; NULL: nowhere. strstr takes 500 bytes of stack on some processors.
 */
static inline const char *text_find(const char *in, const char *word)
{
    const size_t length = strlen(word);
    while ((in = strchr(in, word[0])) != NULL && strncmp(in, word, length) != 0)
        in++;
    return in;
}

static inline bool text_ok(const struct text *t)
{
    return !t->full;
}
