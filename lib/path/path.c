/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "path/path.h"

#include <errno.h>
#include <string.h>

/* Goes along a path component by component and keeps how deep it is, and how many of the leading components
 * are the root's. */
struct walk {
    const char *root; /* at the component that must come next; valid while matched == depth */
    const char *start;
    size_t depth, matched;
};

static size_t path_component_length(const char *at)
{
    size_t length = 0;
    while (at[length] != '\0' && at[length] != '/')
        length++;
    return length;
}

static const char *path_next_component(const char *at)
{
    while (*at == '/')
        at++;
    return at;
}

/* The root's component after `count` others. */
static const char *path_root_after(const char *root, size_t count)
{
    const char *at = path_next_component(root);
    while (count-- > 0)
        at = path_next_component(at + path_component_length(at));
    return at;
}

static void path_go_up(struct walk *walk)
{
    if (walk->depth > 0)
        walk->depth--;
    if (walk->matched > walk->depth) {
        walk->matched = walk->depth;
        walk->root = path_root_after(walk->start, walk->matched);
    }
}

static void path_go_down(struct walk *walk, const char *name, size_t length)
{
    size_t wanted = path_component_length(walk->root);
    if (walk->matched == walk->depth && wanted == length && length > 0 && memcmp(walk->root, name, length) == 0) {
        walk->matched++;
        walk->root = path_next_component(walk->root + length);
    }
    walk->depth++;
}

static void path_go_along(struct walk *walk, const char *path)
{
    for (const char *at = path_next_component(path); *at != '\0';) {
        size_t length = path_component_length(at);
        if (length == 2 && at[0] == '.' && at[1] == '.')
            path_go_up(walk);
        else if (length != 1 || at[0] != '.')
            path_go_down(walk, at, length);
        at = path_next_component(at + length);
    }
}

bool path_has_component(const char *path, const char *name, size_t length)
{
    for (const char *at = path_next_component(path); *at != '\0'; at = path_next_component(at + path_component_length(at)))
        if (path_component_length(at) == length && memcmp(at, name, length) == 0)
            return true;
    return false;
}

enum path_verdict path_verdict(const char *root, const char *base, const char *path)
{
    if (path_is_plainly_beneath(root, path))
        return PATH_BENEATH;
    struct walk walk = {.root = path_next_component(root), .start = root};
    /* Called in one place, it becomes a part of this function, which takes less stack. */
    for (const char *text = path[0] != '/' && base != NULL ? base : path; text != NULL; text = text != path ? path : NULL)
        path_go_along(&walk, text);
    if (*walk.root != '\0')
        return PATH_FOREIGN;
    return walk.depth == walk.matched ? PATH_IS_ROOT : PATH_BENEATH;
}

size_t path_shorten(char *path)
{
    char *to = path;
    if (*path == '/')
        *to++ = '/';
    for (const char *at = path_next_component(path); *at != '\0';) {
        const size_t length = path_component_length(at);
        const char *next = path_next_component(at + length);
        if (length != 1 || at[0] != '.' || *next == '\0') {
            memmove(to, at, length);
            to += length;
            if (next > at + length)
                *to++ = '/';
        }
        at = next;
    }
    *to = '\0';
    return (size_t)(to - path);
}

void path_split(struct path_parts *parts, const char *path)
{
    size_t end = strlen(path);
    size_t all = end;
    while (end > 0 && path[end - 1] == '/')
        end--;
    const char *before = memrchr(path, '/', end);
    const size_t start = before != NULL ? (size_t)(before + 1 - path) : 0;
    *parts = (struct path_parts){.name = path + start, .length = end - start, .parent_length = start, .slash = end < all};
    if (parts->length == 0)
        parts->last = PATH_NONE;
    else if (parts->name[0] == '.' && (parts->length == 1 || (parts->length == 2 && parts->name[1] == '.')))
        parts->last = PATH_DOTS;
    else
        parts->last = PATH_NAME;
}

int path_parent_text(const char *path, size_t length, char to[PATH_MAX])
{
    if (length > PATH_MAX - 2)
        return -ENAMETOOLONG;
    memcpy(to, path, length);
    to[length] = '.';
    to[length + 1] = '\0';
    return 0;
}
