/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One directory by two mounts (a bind mount): where it is beneath a root, though the path that the kernel
 * tells of it leads through another mount than the root's own. Reads /proc/self/mountinfo: slow, and so for
 * directories of which nothing else is known. Async-signal-safe. */

#include <stdbool.h>
#include <stdint.h>

/* Is it seen by another mount of the root's device than the root's own? False: not, or the kernel does not say. */
bool mounts_are_two(const char *root, int directory);
/* `text` (of PATH_MAX bytes) is the kernel's path of `directory`, which is on the device of `root`, and seen by another mount.
 * 1, and `text` is its place relative to the root ("." is the root itself); 0: it is
 * not beneath it by any mount; or -errno. */
int mounts_place(const char *root, int directory, char *text);
/* The same for a root that may be seen nowhere, of which is known where it is within its file system. -ENOENT: nothing is told
 * of the directory's mount, as in a chroot. */
int mounts_place_within(const char *within, int directory, char *text);
/* `text` is the kernel's path of `directory`: 1, and it is where that is within its file system; 0 or -errno: that cannot be
 * told. */
int mounts_within(int directory, char *text);
/* Calls `each` for every mount by which a directory may be seen that is at `within` in its file system, whichever that is, with
 * a path, or which has a part of it, with where it is mounted, until it says anything but 0. That, or 0, or -errno. */
typedef int mounts_each(void *context, uint64_t mount, const char *path, bool is_part);
int mounts_lead_to(const char *within, mounts_each *, void *context);
