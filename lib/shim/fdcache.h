/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Places in branches, named from nearby where each part of a path is a message to a server (a file system in user space,
 * which the kernel asks for every part of every path): there a process keeps some directories open, that of all branches,
 * the leaves that it used last, and the directories of the trunk whose names it uses often. On other file systems a path
 * costs the kernel as much as the question itself, so leaves are kept there by a process that looks at many files of them (ls
 * -l).
 *
 * A path from the directory of branches names the branch, which is what fences a branch: of a node that
 * was lost it has another name. From a leaf what is there is looked at, opened and given other attributes, and files are
 * made, removed, and renamed to names that are not there; if the leaf may be another branch's by then, what was made is taken
 * back, what was renamed is named as before, and of what was removed its home is told to look (operate_open.c,
 * operate_remove.c, operate_rename.c).
 *
 * Of a directory of the trunk the descriptor says where it is, for which the kernel asks nobody (parent_cache.h).
 *
 * The descriptors are far above those that a program is given, closed by exec, and looked at before each use: a program
 * that closes them, or has other files there, has the long way again. For a process that only looks at files that is done
 * once in a tick of the kernel's coarse clock (1 to 10 ms), and when the program has closed or replaced a descriptor of such
 * a number since (fdcache_changed): only one that does so without libc, or while another of its threads looks at files, may for
 * that long be told of a file of that name elsewhere.
 *
 * Async-signal-safe, thread-safe, and right in children. */

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "names/names.h"
#include "shim/state.h"

/* From this number on. Below the 1,024 that a process may have open usually. */
#define NEAR_LOWEST 950

/* The root's directory of branches. False: only the long way leads there. */
bool fdcache_branches(const struct names_root *, int *directory);

/* The leaf at `place` (BRANCH/MIRROR/LEAF): what is to be given back, and keeps *directory what it is until then; -1: it
 * cannot be kept, or, where not names_is_slow_lookup, this process has not been there often. `to_look`: it is to do nothing but
 * look at a file there. */
int fdcache_leaf(const struct names_root *, const char *place, size_t length, bool to_look, int *directory);
/* The one that was kept as `leaf` with that key, looked at like fdcache_leaf to look; false: it is another one by now, or
 * cannot be gone by. */
uint64_t fdcache_leaf_key(const struct names_root *, int leaf);
bool fdcache_leaf_again(const struct names_root *, int leaf, uint64_t key, int *directory);
/* That a file is not there may be the leaf's fault: it was removed, or the program has just closed the descriptor. */
static inline bool fdcache_may_have_moved(long result)
{
    return result == -ENOENT || result == -ENOTDIR || result == -ESTALE || result == -EBADF;
}
/* Is *directory that leaf still? What was made there before is in the leaf then. */
bool fdcache_leaf_is_kept(const struct names_root *, int leaf);
void fdcache_give(const struct names_root *, int leaf);
/* The same, and nobody shall come there any more: another one is at that place. */
void fdcache_give_up(const struct names_root *, int leaf);

/* This process has closed or replaced descriptors, `highest` the last of them. */
static inline void fdcache_changed(unsigned highest)
{
    if (__builtin_expect(highest >= NEAR_LOWEST, 0))
        __atomic_add_fetch(&shim_state.fdcache.changes, 1, __ATOMIC_RELEASE);
}

/* Only where names_is_slow_lookup. Keeps that directory of the trunk, if it can be; `fd`, which it is opened as, is closed. */
void fdcache_keep_trunk(const struct names_root *, struct dirid, int fd);
/* Where it is now, by the kernel; false: it is not kept, or is nowhere. */
bool fdcache_trunk_place(const struct names_root *, struct dirid, char to[PATH_MAX]);
