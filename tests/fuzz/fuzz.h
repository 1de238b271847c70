/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the drivers share. Each gives LLVMFuzzerTestOneInput: libFuzzer calls it with what it thinks of
 * (-Dfuzz=enabled), replay.c with what lies in corpus/. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_must(bool held)
{
    if (!held)
        abort();
}

/* The input from `at` to the next newline as a text of exactly its size, for the caller to free; moves `at`
 * after it. */
static inline char *fuzz_line(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *stop = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
    size_t length = (size_t)((stop != NULL ? stop : end) - *at);
    char *line = malloc(length + 1);
    if (length > 0)
        memcpy(line, *at, length);
    line[length] = '\0';
    *at = stop != NULL ? stop + 1 : end;
    return line;
}
