/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a path's text says by itself. Pure: no I/O, no buffer, no allocation; async-signal-safe.
 *
 * The text cannot know symbolic links: `..` is taken to go back by one component here. So the verdict is a
 * first prefilter: what may lie under a root is then resolved by the kernel. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum path_verdict {
    PATH_FOREIGN = 0, /* its text leads elsewhere */
    PATH_IS_ROOT,     /* it is the root itself */
    PATH_BENEATH,
};

/* Where `path` leads, seen from the absolute directory `base` if it is relative (base may be NULL if it is
 * absolute), with respect to `root`: absolute, without `.`, `..`, doubled or trailing slashes. */
enum path_verdict path_verdict(const char *root, const char *base, const char *path);

/* What nearly every path is: absolute, its text leaves the root's before the root's ends, at a component that
 * is not empty, and no `.` or `..` follows: PATH_FOREIGN for certain. False says nothing. Every call of a
 * program that works elsewhere goes through it, and what it costs after a system call is the code that is not
 * in the processor's nearest cache: so it is short, and inline. */
static inline bool path_is_plainly_foreign(const char *root, const char *path)
{
    size_t at = 0;
    while (root[at] != '\0' && root[at] == path[at])
        at++;
    if (root[at] == '\0' || at == 0)
        return false;
    while (path[at - 1] != '/') /* to the start of the component in which they differ */
        at--;
    if (path[at] == '/')
        return false;
    for (; path[at] != '\0'; at++)
        if (path[at] == '.' && path[at - 1] == '/' && (path[at + 1] == '.' || path[at + 1] == '/'))
            return false;
    return true;
}

/* Do two absolute paths without `.`, `..` and doubled slashes part, so that neither leads to the other? False
 * says nothing. */
static inline bool path_is_apart(const char *root, const char *base)
{
    size_t at = 0;
    while (root[at] != '\0' && root[at] == base[at])
        at++;
    return root[at] != '\0' && base[at] != '\0';
}

/* Is there a `..` in it? */
static inline bool path_goes_up(const char *path)
{
    for (const char *at = path; (at = strchr(at, '.')) != NULL; at++)
        if (at[1] == '.' && (at[2] == '/' || at[2] == '\0') && (at == path || at[-1] == '/'))
            return true;
    return false;
}

/* What most paths beneath a root are: its own text, a name, and no `..`. False says nothing. */
static inline bool path_is_plainly_beneath(const char *root, const char *path)
{
    const size_t length = strlen(root);
    if (length < 2 || strncmp(path, root, length) != 0 || path[length] != '/')
        return false;
    const char *rest = path + length + 1;
    return rest[0] != '\0' && rest[0] != '/' && rest[0] != '.' && !path_goes_up(rest);
}

/* Is it one of its components? */
bool path_has_component(const char *path, const char *name, size_t length);

/* Takes out of the text what says nothing in it: doubled slashes, and each `.` that another component follows. Gives its
 * length. */
size_t path_shorten(char *path);

enum path_last {
    PATH_NAME, /* a name */
    PATH_DOTS, /* `.` or `..`: a directory, whichever */
    PATH_NONE, /* only slashes, or nothing */
};

/* A path taken apart at its last component. */
struct path_parts {
    enum path_last last;
    const char *name;     /* into the path */
    size_t length;        /* of the name, trailing slashes not counted */
    size_t parent_length; /* of what stands before the name, its slash included; 0: the directory it is seen
                             from */
    bool slash;           /* slashes follow the name */
};

void path_split(struct path_parts *, const char *path);
/* The text of the parent, the first `length` bytes of `path`, as statx wants it: `parent/.`, or `.`. 0 or
 * -ENAMETOOLONG. */
int path_parent_text(const char *path, size_t length, char to[PATH_MAX]);
