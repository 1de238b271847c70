/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a path's text says by itself. Pure: no I/O, no buffer, no allocation; async-signal-safe.
 *
 * The text cannot know symbolic links: `..` is taken to go back by one component here. So the verdict is a
 * first sieve: what may lie under a root is then resolved by the kernel. */

#include <stdbool.h>
#include <stddef.h>

enum path_verdict {
    PATH_FOREIGN = 0, /* its text leads elsewhere */
    PATH_IS_ROOT,     /* it is the root itself */
    PATH_BENEATH,
};

/* Where `path` leads, seen from the absolute directory `base` if it is relative (base may be NULL if it is
 * absolute), with respect to `root`: absolute, without `.`, `..`, doubled or trailing slashes. */
enum path_verdict path_verdict(const char *root, const char *base, const char *path);

/* What nearly every path is: absolute, and its text leaves the root's before the root's ends, at a component
 * of its own (not at `.` or a doubled slash), and no `..` could lead back: PATH_FOREIGN for certain. A third
 * of path_verdict's time. False says nothing. */
bool path_is_plainly_foreign(const char *root, const char *path);

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
