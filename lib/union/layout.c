/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/layout.h"

/* ctype.h asks the locale. */
static bool layout_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool layout_is_letter_or_digit(char c)
{
    return layout_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool layout_node_is_valid(const char *node, size_t length)
{
    if (length == 0 || length > LAYOUT_NODE_MAX || !layout_is_letter_or_digit(node[0]))
        return false;
    for (size_t i = 1; i < length; i++)
        if (!layout_is_letter_or_digit(node[i]) && node[i] != '-' && node[i] != '_' && node[i] != '.')
            return false;
    return true;
}

void layout_node_of_host(const char *host, char node[LAYOUT_NODE_MAX + 1])
{
    size_t length = 0;
    for (; length < LAYOUT_NODE_MAX && host[length] != '\0' && host[length] != '.'; length++) {
        const char c = host[length];
        node[length] = layout_is_letter_or_digit(c) || c == '_' ? c : '-';
    }
    node[length] = '\0';
    if (length == 0)
        strcpy(node, "node");
    else if (!layout_is_letter_or_digit(node[0]))
        node[0] = 'n';
}

bool layout_number(const char *digits, size_t length, uint32_t *number)
{
    uint64_t sum = 0;
    if (length == 0 || length > 10 || (digits[0] == '0' && length > 1))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!layout_is_digit(digits[i]))
            return false;
        sum = sum * 10 + (uint64_t)(digits[i] - '0');
    }
    *number = (uint32_t)sum;
    return sum <= UINT32_MAX;
}

size_t layout_branch_node(const char *branch, size_t length, uint32_t *incarnation)
{
    const char *dot = length < LAYOUT_BRANCH_MAX ? memrchr(branch, '.', length) : NULL;
    if (!dot)
        return 0;
    size_t node = (size_t)(dot - branch);
    if (!layout_number(dot + 1, length - node - 1, incarnation) || *incarnation == 0)
        return 0;
    return layout_node_is_valid(branch, node) ? node : 0;
}

/* What follows the prefix, or NULL. */
static const char *layout_behind(const char *text, const char *prefix, size_t length)
{
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

bool layout_place(struct layout_place *place, const char *root, const char *text)
{
    static const char branches[] = "/" LAYOUT_BRANCHES "/";
    size_t root_length = root[1] == '\0' ? 0 : strlen(root);
    const char *at = layout_behind(text, root, root_length);
    at = at != NULL ? layout_behind(at, branches, sizeof branches - 1) : NULL;
    place->mirror = at != NULL ? strchr(at, '/') : NULL;
    const char *leaf = place->mirror != NULL ? strchr(++place->mirror, '/') : NULL;
    place->name = leaf != NULL ? strchr(leaf + 1, '/') : NULL;
    if (place->name == NULL)
        return false;
    place->mirror_length = (size_t)(leaf - place->mirror);
    return *++place->name != '\0' && strchr(place->name, '/') == NULL;
}
