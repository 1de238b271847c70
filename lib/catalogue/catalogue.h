/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The catalogue: the names of physical directories (a trunk directory, a mirror, a leaf), and what markers say, each with a
 * stamp that proves it, in an LMDB file. FORMAT.md is the document of what is stored, and of what a stamp proves. The only room
 * that includes lmdb.h.
 *
 * One process writes the live one, shuntd, on one thread at a time; a copy never changes, and any process reads it. All
 * functions answer 0 or -errno if nothing else is said. They allocate, and are not for signal handlers. Any thread may read,
 * also while another one writes; a catalogue does not outlive a fork. What is not there, of another root or format, or damaged,
 * is as if it had no names. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalogue/stamp.h"
#include "union/marker.h"

struct catalogue;

/* The live one, at `path` (a file; LMDB puts PATH-lock next to it, and PATH-boot says whose it is and of which boot). What is
 * there already goes on if it is of this root and format and was made since this boot, else it is made again. It is opened once
 * at a time in a process. -ENOSPC, -EACCES, ... */
int catalogue_open(struct catalogue **, const char *path, struct dirid root);
/* A copy, which is read as a whole first to see that it is undamaged. -ENOENT; -ESTALE: of another root; -EBADMSG: of another
 * format, byte order or word size, cut short or damaged, or no regular file; -EMFILE: half of this process's descriptors are
 * taken. */
int catalogue_open_copy(struct catalogue **, int directory, const char *name, struct dirid root);
/* Takes NULL. What was put since catalogue_begin is undone, unless it was committed before its end (see there). */
void catalogue_close(struct catalogue *);

/* What is put and dropped between these two is there for good from the end on. A batch need not fit into memory, nor into the
 * map: when it grows large, what was put so far is committed, and the batch goes on. So all or nothing is promised of each
 * directory, not of the batch: after catalogue_undo, an error or a crash, the first of its puts may be there.
 * After a negative answer of any function between them, but -EINVAL, there is no batch, and catalogue_begin may be called
 * again. -ENOSPC: no room on the file system. -ENOMEM: no room in memory or among its addresses. -EROFS: it is a copy. */
int catalogue_begin(struct catalogue *);
int catalogue_end(struct catalogue *); /* -EINVAL: there is no batch */
void catalogue_undo(struct catalogue *);

struct catalogue_name {
    const char *name;
    uint64_t ino;
    uint8_t type; /* DT_* */
};
/* Everybody may list that directory. A copy is for everybody if each of its directories is, else for its owner alone. */
enum { CATALOGUE_PUBLIC = 1 };
/* All the names of a directory, instead of what was known of it. They are sorted here. -EINVAL, and the batch goes on without
 * them: there is none; or a name is empty, longer than 255 bytes, `.`, `..`, has a slash, is there twice, or a type is unknown.
 */
int catalogue_put(struct catalogue *, const struct catalogue_stamp *, struct catalogue_name *names, size_t count,
                  unsigned flags);
/* What a marker says, all but its path; the stamp is that of the file. As catalogue_put. */
int catalogue_put_marker(struct catalogue *, const struct catalogue_stamp *, const struct marker *);
/* Forgets a directory, or a marker, whether it is known or not. */
int catalogue_drop(struct catalogue *, struct dirid);

struct catalogue_proof {
    uint64_t count; /* of the names */
    bool is_public; /* as they were put; the stamp proves that, too: a change of permissions changes the ctime */
};
/* Are the names of a directory known that has this stamp now? 1 or 0 or -errno. `proof` may be NULL. As catalogue_walk
 * and catalogue_measure, it sees what was committed, and may be called by any thread, also while another one writes. */
int catalogue_proves(struct catalogue *, const struct catalogue_stamp *now, struct catalogue_proof *proof);
/* Its names in the order of memcmp, in which a union's listing merges them; a name (it is terminated) lives until `each`
 * returns, which answers 0 to go on, anything else to stop; that is the answer then. `each` may not change the catalogue. 1:
 * all of them were told; 0: not known with this stamp, none was told; -EBADMSG: damaged, and what was told counts for nothing.
 */
typedef int catalogue_each(void *context, const struct catalogue_name *name, size_t length);
int catalogue_walk(struct catalogue *, const struct catalogue_stamp *now, catalogue_each *each, void *context);

/* What the marker says whose file has this stamp now; its path is empty. 1; 0: not known with this stamp; -errno. */
int catalogue_marker(struct catalogue *, const struct catalogue_stamp *now, struct marker *);

/* Removes the files of a live one that is closed. */
void catalogue_remove(const char *path);
/* Its path, of the live one. */
const char *catalogue_path(const struct catalogue *);
/* Writes a compact copy of what was committed: under a temporary name (catalogue.new-PID), fsync, rename to `name`. On an error
 * what had that name before is still there. */
int catalogue_copy(struct catalogue *, int directory, const char *name);

/* `bytes` are those of LMDB's pages as of the last commit. */
struct catalogue_size {
    uint64_t bytes, directories, names;
};
int catalogue_measure(struct catalogue *, struct catalogue_size *);
