/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The file that this thread looked at last. A program that asks one thing after another of each file (ls -l, and what copies
 * all that a file has: its extended attributes after its status) has its name looked up once.
 *
 * It is remembered where its leaf is kept open (fdcache.h) and where its path leads was remembered (parent_cache.h), and goes
 * by what those go by: until the clock's next tick, and until anybody here does what may lead the words elsewhere. Whether the
 * file is still under that name its leaf says: there is nothing in it but files under their names, each in one place.
 *
 * Async-signal-safe, thread-safe, and right in children. */

#include <stdbool.h>
#include <stdint.h>

struct names_root;
struct target;

struct last_lookup_entry {
    uint64_t word; /* of the path; 0: none */
    uint64_t stamp;
    const struct names_root *root;
    uint64_t key; /* of the leaf */
    int leaf;
    uint32_t length, name; /* of the path, and where the name begins in it */
};

struct last_lookup_thread {
    struct last_lookup_entry last;
    bool writing;
};

struct last_lookup {
    const struct names_root *root;
    int leaf; /* in use */
    int at;
    const char *name; /* of the path that was given */
};

/* True: `path` is that file's, which is `name` seen from `at` until last_lookup_holds. */
bool last_lookup_at(struct last_lookup *, const char *path);
/* After a call that does nothing but look. False: it is not there any more, and is to be looked for. */
bool last_lookup_holds(const struct last_lookup *, long result);
/* A call has just gone well that came to the target from its leaf, which is in use. (If it removed the file, that is not there
 * any more, as if somebody else had.) */
void last_lookup_keep(const struct target *, int leaf);
