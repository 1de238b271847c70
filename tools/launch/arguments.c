/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/arguments.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void arguments_init(struct arguments *words)
{
    *words = (struct arguments){0};
}

void arguments_finish(struct arguments *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->at[i]);
    free(words->at);
    *words = (struct arguments){0};
}

static bool arguments_make_room(struct arguments *words)
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
static void arguments_take(struct arguments *words, char *word)
{
    if (!word || words->full || !arguments_make_room(words)) {
        words->full = true;
        free(word);
        return;
    }
    words->at[words->count++] = word;
    words->at[words->count] = NULL;
}

void arguments_add(struct arguments *words, const char *word)
{
    arguments_take(words, strdup(word));
}

void arguments_format(struct arguments *words, const char *format, ...)
{
    char *word = NULL;
    va_list more;
    va_start(more, format);
    if (vasprintf(&word, format, more) < 0)
        word = NULL;
    va_end(more);
    arguments_take(words, word);
}

void arguments_add_all(struct arguments *words, const struct arguments *others)
{
    words->full |= others->full;
    for (size_t i = 0; i < others->count; i++)
        arguments_add(words, others->at[i]);
}

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%"

static char *arguments_quote(char *to, const char *word)
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

char *arguments_quoted(const struct arguments *words)
{
    size_t size = 1;
    for (size_t i = 0; i < words->count; i++)
        size += 4 * strlen(words->at[i]) + 3;
    char *quoted = malloc(size), *at = quoted;
    if (!quoted)
        return NULL;
    *at = '\0';
    for (size_t i = 0; i < words->count; i++)
        at = arguments_quote(stpcpy(at, i > 0 ? " " : ""), words->at[i]);
    return quoted;
}
