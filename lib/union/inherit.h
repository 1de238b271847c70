/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Making one directory equal to another in all that files born in it inherit or are judged by. Blocking; thread-safe; not for
 * signal handlers (attributes.h). */

#include <linux/fs.h>
#include <stdbool.h>

#include "base/sys.h"
#include "index/record.h"
#include "union/disk.h"

/* The directory to be equal to, as it was when it was opened. */
struct inherit {
    char proc[DISK_PROC_SIZE]; /* the path of its descriptor, for its extended attributes */
    struct statx stat;
    bool in_equal;  /* what is to become equal lies in a directory that has become so: set by the caller */
    bool unread;    /* it may not be read, so its flags are not known and left alone */
    unsigned flags; /* FS_IOC_GETFLAGS, 0 where the file system has none */
    bool has_extra;
    struct fsxattr extra; /* FS_IOC_FSGETXATTR, if has_extra */
};

/* `trunk` may be O_PATH and must stay open as long as this is used. 0, a positive enum record_why if nothing
 * can be made equal to it, or -errno. */
int inherit_init(struct inherit *, int trunk);

/* Makes the directory `to` (a descriptor to read it with) equal and reads that back. 0, a positive enum
 * record_why if it did not become so, or -errno. */
int inherit_apply(const struct inherit *, int to);
