/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The index of one node and one session: a file on node-local storage, which shuntd alone writes and every process of the
 * node reads where it is mapped (view.h).
 *
 * This half is shuntd's. All functions answer 0 or -errno (-ENOSPC: no room, and nothing has changed; -EBADMSG: the file is
 * damaged). What a function has changed readers see when it returns. Not thread-safe: one thread writes. FORMAT.md is the
 * document of what is stored. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/record.h"

/* What an index was made for. A reader that expects another refuses it. */
struct index_stamp {
    uint64_t session;
    struct dirid root;
};

struct index;

/* Makes a new, empty index in `directory` (which exists; an index found there is replaced). `map_size` is the
 * most it can grow to. */
int index_create(struct index **, const char *directory, size_t map_size, const struct index_stamp *);
/* Takes NULL. */
void index_destroy(struct index *);

/* Was -EBADMSG answered since it was made? Then something else has written to its file. */
bool index_is_damaged(const struct index *);

/* Is there room for a name that may not be there yet? 0, or -ENOSPC, and it is not to be put now. Some room beyond that is
 * kept for names whose put cannot be put off. */
int index_make_room(struct index *, struct dirid, const char *name, size_t length);
/* ... for so many names at once of one directory, with so many bytes in all; they are put next. */
int index_make_room_for(struct index *, uint64_t names, uint64_t bytes);
/* How many bytes so many names with so many bytes in all take, about. Pure. */
uint64_t index_size_of(uint64_t names, uint64_t bytes);

/* get answers -ENOENT where there is none; del of what is not there is 0. */
int index_get_entry(struct index *, struct dirid, const char *name, size_t length, struct record_entry *);
int index_put_entry(struct index *, struct dirid, const char *name, size_t length, const struct record_entry *);
/* The same where there is none; else -EEXIST, and it is what is there. -ENOSPC as index_make_room. */
int index_add_entry(struct index *, struct dirid, const char *name, size_t length, struct record_entry *);
int index_del_entry(struct index *, struct dirid, const char *name, size_t length);
int index_get_dir(struct index *, struct dirid, struct record_dir *);
int index_put_dir(struct index *, struct dirid, const struct record_dir *);
/* Forgets a directory and all its names, at once. */
int index_del_dir(struct index *, struct dirid);
/* Forgets the directory's own record alone. */
int index_forget_dir(struct index *, struct dirid);
/* ... those of its names whose hashes are meant (NULL: all). A reader that lists it meanwhile is told. */
typedef bool index_is_meant(void *context, uint64_t hash);
int index_del_names(struct index *, struct dirid, index_is_meant *, void *context);
/* How many of its names there are, and whether there is any: 1, 0 or -errno. */
uint64_t index_count_names(struct index *, struct dirid);
int index_has_names(struct index *, struct dirid);
/* Its names in the order of their hashes, from the first that has at least `from`. `each` answers 0 to go on,
 * anything else to stop; that is the answer then, else 0 at the end, or -errno. */
typedef int index_each(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry);
int index_list(struct index *, struct dirid, uint64_t from, index_each *each, void *context);
int index_put_branch(struct index *, uint16_t number, const char *branch);

struct index_size {
    uint64_t bytes_used; /* what was given back not counted */
    uint64_t bytes;      /* of its file, which does not become smaller */
    uint64_t entries;    /* names, directories, branches, and the stamp */
};
void index_measure(struct index *, struct index_size *);
