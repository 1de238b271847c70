/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The system that LMDB sees when it lives in somebody else's process.
 *
 * The build renames in a copy of liblmdb.a the few libc functions with which LMDB could meet the application
 * (open, close, fcntl, mmap, the malloc family, what a fork child's inherited files want, and getpid) to
 * lmdb_host_NAME; lmdb_host.c answers them. Reasons, each of which was seen to lose data or hang before:
 *   - an application that closes all its descriptors would close LMDB's, with them the record locks that keep
 * its reader slots, and the next writer would recycle pages under a reader. Here LMDB's record locks are not
 * taken at all (shuntd knows its readers by process, lmdb_daemon.c), and its descriptors are closed once
 * mapped;
 *   - malloc may be the very caller (an allocator that opens its configuration file while it starts);
 *   - open is exported by the shim.
 * Memory comes from pages that are mapped here and never freed singly: a view allocates when it is opened and
 * when a seat is made, nowhere else. */

#include <stdbool.h>
#include <stddef.h>

#define LMDB_FILES 2 /* its data and its lock file, in the order in which LMDB opens them to read */

struct lmdb_file {
    int fd;
    void *at; /* where it is mapped */
    size_t size;
};

struct lmdb_memory {
    char *at; /* the arena, of LMDB_ARENA bytes */
    size_t used;
    struct lmdb_file files[LMDB_FILES];
    unsigned opened;
    bool inherited; /* the files are mapped already: none is opened */
};

int lmdb_memory_init(struct lmdb_memory *);
/* In a fork child: an arena of its own instead of the parent's, which is used up; LMDB is going to find the
 * files where the parent mapped them, and needs neither their names nor the permission to open them. 0 or
 * -ENOMEM. */
int lmdb_memory_inherit(struct lmdb_memory *, const struct lmdb_memory *parents);
/* Likewise, but the old one goes on being used: an arena of its own, and the first file mapped once more, at `size`. 0 or
 * -ENOMEM. Opens nothing. */
int lmdb_memory_grow(struct lmdb_memory *memory, const struct lmdb_memory *old, size_t size);
/* Zeroed, 16-byte aligned; NULL when the arena is full. */
void *lmdb_memory_take(struct lmdb_memory *, size_t size);
/* Unmaps the arena and what LMDB mapped. */
void lmdb_memory_finish(struct lmdb_memory *);
/* Closes the descriptors that LMDB opened; its mappings stay. */
void lmdb_close_files(struct lmdb_memory *);

/* Says whose memory this thread's calls into LMDB use from now on. Signals are blocked between the two. */
void lmdb_enter(struct lmdb_memory *);
void lmdb_leave(void);
