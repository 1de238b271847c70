/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the kernel knows of the view: an inode for each file that it has looked up and not yet forgotten, with an O_PATH
 * descriptor of it, which stays right when the file is renamed or removed. The address is the number that the kernel is told.
 *
 * Descriptors are limited. Beyond `enough` the names of files that were not used for the longest are taken out of the kernel's
 * cache, which then forgets them (inode_trim). Directories stay, and what is open.
 *
 * Thread-safe. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "backing.h"
#include "pages.h"

struct lock_owner;

struct inode {
    int fd;       /* O_PATH; for good. -1: inode_take_gone */
    dev_t device; /* with `number`: of the file, for good */
    ino_t number;
    mode_t type;    /* S_IFMT */
    uint64_t birth; /* inode_now of when it became known */
    /* The table's lock's from here on. */
    uint64_t lookups; /* that the kernel has not yet taken back */
    uint64_t opened;
    uint64_t parent; /* where it was last looked up: a number of the kernel's, and its name */
    char *name;
    struct inode *next;             /* of the same slot */
    TAILQ_ENTRY(inode) used;        /* the one used last at the end; not the root */
    struct lock_owner *lock_owners; /* lock.c's, with a lock of its own */
    struct pages pages;
    struct backing backing;
};

TAILQ_HEAD(inode_list, inode);

struct inode_table {
    pthread_mutex_t lock;
    pthread_cond_t crowded; /* is_crowded is set: one was added to `enough` or more */
    bool is_crowded;
    struct inode *root;
    struct inode **slots;
    size_t slots_count, count, enough;
    uint64_t births;
    struct inode_list used;
};

/* Takes over the descriptor of the root; lasts as long as the process. 0 or -errno. */
int inode_table_init(struct inode_table *, int root_fd, size_t enough);

/* What inode_find takes, from before the stat. */
uint64_t inode_now(struct inode_table *);
/* One lookup more of an inode that was known `since` then, so that its number was no other file's meanwhile; NULL: there is
 * none. */
struct inode *inode_find(struct inode_table *, const struct stat *, uint64_t since, uint64_t parent, const char *name);
/* ... and if it is not, of a new one. `fd` is taken over, also on failure. NULL: no memory. */
struct inode *inode_take(struct inode_table *, int fd, const struct stat *, uint64_t parent, const char *name);
/* ... of a file that was removed before it could be opened: what is asked of it fails. */
struct inode *inode_take_gone(struct inode_table *, mode_t type);
/* One lookup more, by a name that was just made of it. */
void inode_look(struct inode_table *, struct inode *, uint64_t parent, const char *name);
void inode_forget(struct inode_table *, struct inode *, uint64_t lookups);
/* `by` is 1 or -1: while it is open it is not trimmed. */
void inode_open(struct inode_table *, struct inode *, int by);

/* Waits until one more than enough was added, then calls `forget` for a quarter of them, without the lock. */
void inode_trim(struct inode_table *, void (*forget)(void *context, uint64_t parent, const char *name), void *context);
