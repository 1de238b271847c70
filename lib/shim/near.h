/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Places in branches, named from nearby where each part of a path is a message to a server (a file system in user space,
 * which the kernel asks for every part of every path): there a process keeps the directory of all branches open. A
 * branch itself is still reached by its name each time, which is what fences it.
 *
 * It is one descriptor, far above those that a program is given, closed by exec, and looked at before each use: a program
 * that closes it, or has another file there, has the long way again. Async-signal-safe, thread-safe, and right in
 * children. */

#include <stdbool.h>

#include "names/names.h"

/* The root's directory of branches. False: only the long way leads there. */
bool near_branches(struct names_root *, int *directory);
