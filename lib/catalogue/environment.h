/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* LMDB's environment under a catalogue: opening, transactions, the size of the map, and what its codes mean. For the files of
 * this room. Where a function here answers `code`, that is 0, LMDB's code, a positive errno, or -errno; environment_error makes
 * 0 or -errno of any of them. */

#include <lmdb.h>
#include <pthread.h>
#include <stdbool.h>

#include "catalogue/catalogue.h"
#include "index/record.h"

struct catalogue {
    MDB_env *env;
    struct dirid root;
    MDB_dbi about, directories, names, markers;
    MDB_txn *batch;    /* NULL without one */
    size_t page;       /* bytes */
    uint64_t reserved; /* so many new pages what was put since the last commit takes at most */
    int failed;        /* -errno once nothing works any more */
    bool is_copy;
    char *path;           /* of the live one; NULL */
    pthread_rwlock_t map; /* read: a transaction to read is open; write: the map is moved */
};

int environment_error(int code);

/* Memory for a catalogue that environment_close frees, which takes NULL. -ENOMEM. */
int environment_create(struct catalogue **);
void environment_close(struct catalogue *);
/* Opens the file, which is made if `flags` do not say MDB_RDONLY, and is this root's: -ESTALE if it is not, -EBADMSG. `map` is
 * the size of the map in the beginning. */
int environment_open(struct catalogue *, const char *path, unsigned flags, size_t map, struct dirid root);

/* What the file's pages take, as of the last commit. */
uint64_t environment_bytes(struct catalogue *);

/* A transaction to read in what was committed. By any thread. -errno. */
int environment_read(struct catalogue *, MDB_txn **);
void environment_read_end(struct catalogue *, MDB_txn *);

/* All three: -errno. */
int environment_begin(struct catalogue *);
int environment_commit(struct catalogue *);
/* Sees to it that a batch goes on that can take so many new pages. What was put before may be committed for that. After an
 * error there is no batch. */
int environment_make_room(struct catalogue *, uint64_t pages);
/* Undoes the batch after a code that is not 0. -errno, what the code means. */
int environment_give_up(struct catalogue *, int code);
