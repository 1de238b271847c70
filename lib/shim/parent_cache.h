/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Which directory the words before a name lead to, remembered. The kernel says that with one statx of `parent/.`, which
 * takes as long as what most calls ask for. Each thread remembers a few directories that it uses again and again, and
 * goes by that for names alone that the index knows as files: what is not there or is a link is looked at from the kernel's
 * answer, so a directory that was removed needs nobody to say so; and so is what is to be removed or renamed. A file that is
 * to be made is asked for where memory has the directory, and made when the kernel has said the same, while its home was at
 * work (TARGET_LATER). Where each part of a path is a message to a server, the directory is kept open (fdcache.h) instead, and
 * the kernel says where that is now: nobody has moved or removed it by this mount of the file system then, nor has this process
 * gone after a chroot, and names in it may be made, removed and renamed.
 *
 * What else may change is where a directory is, and which processes the directories on the way to it let through:
 *  - One is renamed: every daemon of the session raises its channel's `places` before that and after it
 *    (daemon/coordinator/rename_fence.h), and no process goes by what it remembers in between.
 *  - One is given another mode, owner or ACL: the channel of this node says so; other nodes see it a moment later.
 *  - This process becomes somebody else, changes its groups or capabilities, or goes after a chroot: parent_cache_forget.
 *  - What a program without the shim does, or somebody mounts, is seen a moment later.
 *  - What happens above the root the file's own path meets, be it in the trunk or in a branch; but for a file that is looked
 *    at from its leaf's descriptor (fdcache.h) it is as with directories in the root: renames, too, on this node at once.
 *
 * Only words that are the directory's own path are remembered, without links and `..`, be it from the working directory.
 * Words are looked at that closely once they have been used a few times within such a moment. It lasts until the next tick
 * of the kernel's coarse clock (1 to 10 ms); a quarter of a second on file systems that are asked for each part of a path
 * each time (FUSE), which remember as long themselves elsewhere.
 *
 * Async-signal-safe, thread-safe. A vfork child goes by what its parent knows, as with working directories (cwd.h), and
 * leaves nothing after. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names/names.h"

struct parent {
    struct names_root *root;
    struct dirid dir;
    uint64_t mount;
    uint64_t place; /* where it was, by the kernel, as a word; 0: that is not asked again */
};

#define PARENT_CACHE_ENTRIES 3 /* the loader has memory of threads for few namespaces (wrap_namespace.c) */

struct parent_cache_entry {
    uint64_t word;
    uint64_t until;  /* by the coarse clock; 0: where the path leads was not looked at closely */
    uint64_t places; /* the channel's, before it was */
    struct parent parent;
    uint64_t since; /* they were used so often since then */
    uint32_t times;
};

struct parent_cache_thread {
    struct parent_cache_entry entries[PARENT_CACHE_ENTRIES];
    bool writing;
    unsigned next; /* to be replaced */
};

struct parent_cache_state {
    uint64_t identities; /* a number for each identity that this process has had */
};

struct scratch;

/* The words of one call, and when they were looked at; word 0: nothing is remembered of them. */
struct parent_cache_path {
    uint64_t word;
    uint64_t from; /* identity and working directory, as a word */
    uint64_t now;  /* by the coarse clock */
    const char *path;
    size_t length; /* of the parent's text, its slash included */
};

/* Before the kernel is asked. */
struct parent_cache_path parent_cache_words(int at, const char *path, size_t length);
/* True: that is the directory, and *moment a word for when memory said so, not 0. */
bool parent_cache_recall(const struct parent_cache_path *, struct parent *, uint64_t *stamp);
/* Would it say so still of a path that begins like that, seen from the working directory? */
bool parent_cache_is_now(const struct names_root *, const char *path, uint64_t stamp);
/* ... and is still where it was, says the kernel, without asking the file system. Uses scratch->real. */
bool parent_cache_are_there(const struct parent *, struct scratch *);
/* The kernel has said so since. Uses scratch->real and, of scratch->text[0], which is `parent/.`, the room. */
void parent_cache_learn(const struct parent_cache_path *, const struct parent *, struct scratch *);
/* This process is somebody else from now on, or sees other files. */
void parent_cache_forget(void);
