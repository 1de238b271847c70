/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

#include "names/names.h"

/* Where a directory is beneath a root, where the kernel does not say so (no /proc, or it is out of this process's tree): it is
 * looked for in the directory above it, and so on. 1, and `text` is its place relative to the root ("." is the root
 * itself); 0: no way leads up to it through this file system; or -errno. Slow. Async-signal-safe. */
int climb_place(const struct names_root *, int directory, char text[PATH_MAX]);
