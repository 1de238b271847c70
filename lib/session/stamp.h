/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The stamp, ROOT/.shunt/root: which root this is, and which directory it was written for.
 *
 *     shunt-root 1
 *     id 5f3a9c01d2e40718
 *     directory 1234 1700000000000000000
 *
 * A root that was copied carries the stamp of another directory. Thread-safe; not for signal handlers. */

#include <stddef.h>
#include <stdint.h>

#include "index/record.h"

#define STAMP_NAME "root"
#define STAMP_TEMPORARY ".root-" /* ... what it is called at first begins so */
#define STAMP_SIZE_MAX 256

struct stamp {
    uint64_t id; /* random, never 0 */
    struct dirid directory;
};

/* Pure. 0, or -EBADMSG. */
int stamp_parse(struct stamp *, const char *text, size_t length);
/* Pure. The length, or -ENAMETOOLONG. */
int stamp_format(const struct stamp *, char *to, size_t size);

/* `own` is a descriptor of ROOT/.shunt. The identity of ROOT: 0 or -errno. */
int stamp_root_of(int own, struct dirid *);
/* 0, -ENOENT without one, -EBADMSG, another -errno. */
int stamp_read(int own, struct stamp *);
/* Replaces it at once. */
int stamp_write(int own, const struct stamp *);
/* ... by a new one for this directory. */
int stamp_renew(int own, struct dirid directory);
/* Was it written for another directory, i.e. is the one above `own` a copy? 1, 0 (also without a stamp) or
 * -errno. */
int stamp_is_copied(int own);
