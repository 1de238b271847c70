/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Input: a launch line, a word a line. What is composed of it has the same words in the same order, the
 * wrapper before each program, and takes it apart again at the same places. */

#include "fuzz.h"
#include "launch/line.h"

#define MOST 64

static bool is_program(const char *word)
{
    return word[0] == 'a';
}

static size_t fuzz_line_wrappers(const struct arguments *words)
{
    size_t count = 0;
    for (size_t i = 0; i < words->count; i++)
        count += !strcmp(words->at[i], "WRAPPER");
    return count;
}

static void fuzz_line_compose(const struct line *line, bool has_wrapper)
{
    static const struct line_variable variables[] = {{"LD_PRELOAD", "SHIM"}, {"SHUNT_ROOT", "/r"}};
    struct arguments wrapper, to;
    arguments_init(&wrapper);
    arguments_init(&to);
    arguments_add(&wrapper, "WRAPPER");
    line_compose(line, &wrapper, variables, 2, &to);
    fuzz_must(to.full || has_wrapper || fuzz_line_wrappers(&to) == line->parts);
    line_carry(line, &to);
    arguments_finish(&wrapper);
    arguments_finish(&to);
}

static void try_line(char **words)
{
    struct line line;
    bool has_wrapper = false;
    for (size_t i = 0; words[i]; i++)
        has_wrapper |= !strcmp(words[i], "WRAPPER");
    for (enum line_kind kind = LINE_PLAIN; kind < LINE_UNTOLD; kind++) {
        if (line_parse(&line, kind, words, is_program) < 0)
            continue;
        fuzz_must(line.parts > 0 && line.part[line.parts - 1].end == line.count);
        for (size_t i = 0; i < line.parts; i++)
            fuzz_must(line.part[i].begin <= line.part[i].program && line.part[i].program < line.part[i].end);
        fuzz_line_compose(&line, has_wrapper);
    }
    line_kind(words);
    line_kind_of_version(words[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *at = data, *end = data + size;
    char *words[MOST + 1];
    size_t count = 0;
    while (at < end && count < MOST)
        words[count++] = fuzz_line(&at, end);
    words[count] = NULL;
    if (count > 0)
        try_line(words);
    for (size_t i = 0; i < count; i++)
        free(words[i]);
    return 0;
}
