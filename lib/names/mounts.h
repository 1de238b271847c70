/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One directory by two mounts (a bind mount): where it is beneath a root, though the path that the kernel
 * tells of it leads through another mount than the root's own. Reads /proc/self/mountinfo: slow, and so for
 * directories of which nothing else is known. Async-signal-safe. */

/* `text` (of PATH_MAX bytes) is the kernel's path of `directory`, which is on the device of `root`, a path
 * that it is not beneath. 1, and `text` is its place relative to the root ("." is the root itself); 0: it is
 * not beneath it by any mount; or -errno. */
int mounts_place(const char *root, int directory, char *text);
