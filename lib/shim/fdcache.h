/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Places in branches, named from nearby where each part of a path is a message to a server (a file system in user space,
 * which the kernel asks for every part of every path): there a process keeps some directories open, that of all branches and
 * the first leaves that it looks into. On other file systems a path costs the kernel as much as the question whether a
 * descriptor is still what it was, and none is kept.
 *
 * A number may be another file's by the time it is used: in another thread's table of descriptors (unshare, close_range,
 * clone), in that of a vfork child, or since the program has closed it or put another file there. So
 *  - the kernel is asked before each use, in the table of the thread that uses it, whether it is that directory: device and
 * inode, which stay its own as long as it is open;
 *  - what is between that and the use no question can close while other threads run. From the directory of branches a path goes
 * on with BRANCH/MIRROR/LEAF, which no other directory has below it, since a mirror's name is random (but a copy of that very
 *    directory): elsewhere nothing is there, which is never believed of a file that is known, and the next try begins with the
 *    question. The path names the branch, which is what fences a branch: of a node that was lost it has another name.
 *  - From a leaf other directories may well have a file of that name. So each call opens the leaf for itself: `.` from the kept
 *    descriptor, for which the file system is not asked, and which is looked at afterwards. That number is new, and the
 *    call's alone, whatever becomes of the kept one, also if the program saves that, has another directory there for a
 *    moment, and puts it back. Where a file is only looked at, the kernel is asked once more after it whether the call's own
 *    number is that directory still: a program may close, or replace, whatever is open.
 *  - A leaf does not name its branch. A call that makes, removes or renames a file there checks the lease afterwards: if the
 *    process still has it, the branch was not fenced; if not, a new file is removed, a rename is reversed, and the home is told
 *    to look for a removed name.
 *
 * Nothing is ever closed, since the number may be the program's own by then: what has been lost is not used any more, and no
 * more than FDCACHE_TRIES and FDCACHE_LEAVES are opened for a root in a process. They are far above those that a program is
 * given, and closed by exec.
 *
 * Async-signal-safe, thread-safe, and right in children. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/state.h"

/* From this number on. Below the 1,024 that a process may have open usually. */
#define FDCACHE_LOWEST 950

/* The root's directory of branches. False: only the long way leads there. */
bool fdcache_branches(const struct names_root *, int *directory);

/* Only where names_is_slow_lookup. The leaf at `place` (BRANCH/MIRROR/LEAF): which one it is, and a descriptor of this call's
 * own, opened from the kept one, to be closed. False: it is not kept. */
bool fdcache_pin_leaf(const struct names_root *, const char *place, size_t length, int *leaf, int *own);
/* After a file was looked at from `own`: was that the leaf? */
bool fdcache_leaf_held(const struct names_root *, int leaf, int own);
/* A file that was not there is in the leaf of that place: it is another one. */
void fdcache_lose_leaf(const struct names_root *, int leaf);
/* That a file is not there may be the leaf's fault, which was removed. */
static inline bool fdcache_may_have_moved(long result)
{
    return result == -ENOENT || result == -ENOTDIR || result == -ESTALE || result == -EBADF;
}
