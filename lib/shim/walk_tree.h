/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a walk of fts is made of. Its whole state is in the structures of <fts.h>: the entry that was told
 * last (fts_cur), whose fts_parent and fts_link are the way up and the siblings still to come; the children
 * that were read of it (fts_child); and one path text that all entries share (fts_path).
 *
 * Unless FTS_NOCHDIR, the working directory is the one that holds the entry told last, so that names at any
 * depth are reached by fts_accpath, which then is a bare name.
 *
 * Functions that answer int answer 0, or -1 with errno. */

#include <fts.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool tree_has(const FTS *tree, int option)
{
    return tree->fts_options & option;
}

/* The walk cannot go on; NULL. */
static inline FTSENT *tree_stop(FTS *tree)
{
    tree->fts_options |= FTS_STOP;
    return NULL;
}

/* `.` or `..` */
static inline bool tree_is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* NULL: no memory. */
FTSENT *entry_new(const FTS *, const char *name, size_t length);
/* What comes after an entry, or else above it; last the parent of the starts, and NULL. */
static inline FTSENT *entry_after(const FTSENT *entry)
{
    return entry->fts_link != NULL ? entry->fts_link : entry->fts_parent;
}
/* Looks at the file by fts_accpath and fills in what is seen; the value for fts_info. */
unsigned short entry_look(const FTS *, FTSENT *, bool follows_links);
/* A list in the order that the caller of fts_open asked for. */
FTSENT *entries_sorted(const FTS *, FTSENT *list, size_t count);
void entries_free(FTSENT *list);
static inline void tree_free_children(FTS *tree)
{
    entries_free(tree->fts_child);
    tree->fts_child = NULL;
}

/* Makes room in the path for `more` bytes and then some; `fresh` are entries that are not in the tree yet. */
int path_grow(FTS *, size_t more, FTSENT *fresh);
/* Where the slash before the name of an entry's child is, or goes. */
size_t path_slash(const FTSENT *);
/* Makes the path that of an entry beneath the entry it was of; the entry. */
FTSENT *path_to(FTS *, FTSENT *);
FTSENT *path_to_start(FTS *, FTSENT *);

/* Changes of the working directory; none if FTS_NOCHDIR. Those that name an entry are made only if its
 * identity is the one that was seen; otherwise ENOENT. */
int tree_open_directory(const char *path);
int tree_go(const FTS *, int fd);
int tree_go_to(const FTS *, const FTSENT *, int fd);
int tree_go_by_path(const FTS *, const FTSENT *, const char *path);

/* The entries of the directory that was told last, or NULL: there are none, or fts_info or FTS_STOP says why
 * not. After TO_DESCEND it is the working directory if there are any. */
enum tree_purpose { TO_DESCEND, TO_TELL, TO_TELL_NAMES };
FTSENT *tree_read(FTS *, enum tree_purpose);
