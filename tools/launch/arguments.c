/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/arguments.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void words_init(struct words *words)
{
    *words = (struct words){0};
}

void words_finish(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->at[i]);
    free(words->at);
    *words = (struct words){0};
}

static bool make_room(struct words *words)
{
    if (words->count + 1 < words->size)
        return true;
    size_t size = words->size ? 2 * words->size : 32;
    char **at = realloc(words->at, size * sizeof *at);
    if (!at)
        return false;
    words->at = at;
    words->size = size;
    return true;
}

/* Takes what was allocated, or NULL for what could not be. */
static void take(struct words *words, char *word)
{
    if (!word || words->full || !make_room(words)) {
        words->full = true;
        free(word);
        return;
    }
    words->at[words->count++] = word;
    words->at[words->count] = NULL;
}

void words_add(struct words *words, const char *word)
{
    take(words, strdup(word));
}

void words_format(struct words *words, const char *format, ...)
{
    char *word = NULL;
    va_list more;
    va_start(more, format);
    if (vasprintf(&word, format, more) < 0)
        word = NULL;
    va_end(more);
    take(words, word);
}

void words_add_all(struct words *words, const struct words *others)
{
    words->full |= others->full;
    for (size_t i = 0; i < others->count; i++)
        words_add(words, others->at[i]);
}

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%"

static char *quote(char *to, const char *word)
{
    if (*word && !word[strspn(word, PLAIN)])
        return stpcpy(to, word);
    *to++ = '\'';
    for (; *word; word++)
        if (*word == '\'')
            to = stpcpy(to, "'\\''");
        else
            *to++ = *word;
    *to++ = '\'';
    *to = '\0';
    return to;
}

char *words_quoted(const struct words *words)
{
    size_t size = 1;
    for (size_t i = 0; i < words->count; i++)
        size += 4 * strlen(words->at[i]) + 3;
    char *quoted = malloc(size), *at = quoted;
    if (!quoted)
        return NULL;
    *at = '\0';
    for (size_t i = 0; i < words->count; i++)
        at = quote(stpcpy(at, i > 0 ? " " : ""), words->at[i]);
    return quoted;
}
