/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Locks of processes in the mount, held in the real file, so that they exclude processes outside of it. flock is the open
 * file's own. A record lock belongs to a process there, and all processes of the mount are one here: each has an open file of
 * its own, whose lock (F_OFD_SETLK) stands for it; so has each open file there that is itself an owner. What waits does so on a
 * thread of its own, and may be interrupted. What only the kernel could know is not: EDEADLK, and the process id of a holder in
 * the same mount. */

#include <stdint.h>

struct inode;

/* An owner has closed a descriptor of the file: its record locks go. */
void lock_drop(struct inode *, uint64_t owner);
/* An open file was closed by the last one that had it: so do those that it held itself (F_OFD_SETLK). */
void lock_drop_file(struct inode *, uint64_t file);
