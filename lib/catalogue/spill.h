/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The names of one directory that are too many for the index, in an LMDB file of their own, for the daemon that is their home.
 * Nobody else reads it: it has no name any more once it is open, and ends with the daemon. By one thread. All functions answer
 * 0 or -errno: -ENOSPC, no room on the file system, and nothing has changed; after any other but -ENOENT and -EEXIST nothing
 * can be done with it but to destroy it.
 *
 * The key is the name's hash, in the order of which names are told, and the name; the value is that of the index
 * (index/record.h). The file grows before it is written to, so that a write never finds the file system full: that would be a
 * SIGBUS. Nothing is synchronised, and a transaction is closed now and then only for LMDB to use its free pages again. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/index.h"

struct spill;

/* At `path`, where nothing is yet. */
int spill_create(struct spill **, const char *path);
/* Takes NULL. */
void spill_destroy(struct spill *);

/* As those of the index: get answers -ENOENT where there is none; del of what is not there is 0; add -EEXIST, and what is there
 * is in the entry. */
int spill_get(struct spill *, const char *name, size_t length, struct record_entry *);
int spill_put(struct spill *, const char *name, size_t length, const struct record_entry *);
/* After all that are there, in the order of their hashes, then of their bytes: that fills its pages. */
int spill_append(struct spill *, const char *name, size_t length, const struct record_entry *);
int spill_add(struct spill *, const char *name, size_t length, struct record_entry *);
int spill_del(struct spill *, const char *name, size_t length);
/* In the order of their hashes, from the first that has at least `from`. `each`, which changes nothing here, answers 0 to go
 * on; else that is the answer. */
int spill_list(struct spill *, uint64_t from, index_each *each, void *context);
int spill_del_names(struct spill *, index_is_meant *, void *context);
/* 1, 0 or -errno */
int spill_has_names(struct spill *);
/* Is there room for one more name? 0 or -ENOSPC. */
int spill_make_room(struct spill *);
/* Of the file. */
uint64_t spill_bytes(const struct spill *);
