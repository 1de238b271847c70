/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The marker of a redirected directory: DIRECTORY/.shunt-dir, a small text file.
 *
 *     shunt-dir 1
 *     mirror out-5f3a9c01d2e4
 *     directory 1234 1700000000000000000
 *     path out
 *     root 1200 1690000000000000000
 *
 *     This directory is managed by shunt ... (words for a person, ignored)
 *
 * Its id (the 12 hexadecimal digits) names the mirrors. It travels with a native rename of the directory; a
 * native copy carries it too, which is why it also says which directory it was written for (inode number and
 * birth, as a struct dirid has them), where that was (a newline in the path stands as \n, a backslash as \\), and in which
 * root. That line came later: without it the marker is one of this root.
 *
 * Allocates nothing and shares no state; takes up to 10 KiB of stack (MARKER_SIZE_MAX). All that is not pure is blocking. */

#include <stddef.h>
#include <stdint.h>
#include <limits.h>

#include "index/record.h"

#define MARKER_SIZE_MAX (2 * PATH_MAX + 1024)

struct marker {
    uint64_t id;                    /* 48 bits, never 0 */
    char mirror[RECORD_MIRROR_MAX]; /* LABEL-ID */
    struct dirid directory;         /* that it was written for */
    char path[PATH_MAX];            /* where that was, relative to the root; "." is the root */
    struct dirid root;              /* ... the root's own; zero: it does not say */
};

/* Pure. 0, or -EBADMSG: not a marker of this format. */
int marker_parse(struct marker *, const char *text, size_t length);
/* Pure. The length, or -ENAMETOOLONG. */
int marker_format(const struct marker *, char *to, size_t size);
/* Pure. Fills mirror from id and a label made of the last component of path: letters, digits, `-`, `_` and
 * `.` stay, other bytes become `_`, at most 64; "root" for the root. */
void marker_name(struct marker *);

/* Reads the marker of an open directory: 0, -ENOENT without one, -EBADMSG if it is no marker, another -errno.
 */
int marker_read(int directory, struct marker *);
/* Writes a new marker, whole or not at all; -EEXIST if one is there. */
int marker_write(int directory, const struct marker *);
/* Replaces the marker at once (rename of a temporary file), or removes it. The directory's mtime stays, which tells of names
 * that an application knows: what others make or remove there meanwhile is in its ctime alone. */
int marker_replace(int directory, const struct marker *);
int marker_remove(int directory);
