/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Input: a line each of a root, seen from which the second is a place; of a name as it may stand in .shunt/b or in a
 * mirror, and as another daemon may say it. */

#include <stdio.h>

#include "fuzz.h"
#include "union/layout.h"

static void try_place(const char *root, const char *text)
{
    struct layout_place place;
    size_t length = strlen(text);
    if (!layout_place(&place, root, text))
        return;
    fuzz_must(place.mirror > text && place.mirror + place.mirror_length < place.name);
    fuzz_must(memchr(place.mirror, '/', place.mirror_length) == NULL && place.name < text + length + 1);
}

static void try_branch(const char *branch, size_t length)
{
    char again[LAYOUT_BRANCH_MAX + 16];
    uint32_t incarnation;
    size_t node = layout_branch_node(branch, length, &incarnation);
    if (node == 0)
        return;
    fuzz_must(layout_node_is_valid(branch, node) && incarnation > 0 && length < LAYOUT_BRANCH_MAX);
    snprintf(again, sizeof again, "%.*s.%u", (int)node, branch, incarnation);
    fuzz_must(strlen(again) == length && memcmp(again, branch, length) == 0);
}

static void try_number(const char *digits, size_t length)
{
    char again[16];
    uint32_t number;
    if (!layout_number(digits, length, &number))
        return;
    snprintf(again, sizeof again, "%u", number);
    fuzz_must(strlen(again) == length && memcmp(again, digits, length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *at = data, *end = data + size;
    char *root = fuzz_line(&at, end), *place = fuzz_line(&at, end), *name = fuzz_line(&at, end);
    char *absolute = malloc(strlen(root) + 2);
    absolute[0] = '/';
    strcpy(absolute + 1, root);
    try_place(absolute, place);
    try_branch(name, strlen(name));
    try_number(name, strlen(name));
    fuzz_must(!layout_is_ours(name, strlen(name), false) || layout_is_ours(name, strlen(name), true));
    free(absolute);
    free(root);
    free(place);
    free(name);
    return 0;
}
