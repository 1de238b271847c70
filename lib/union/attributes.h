/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Extended attributes and ACLs of a directory, which are extended attributes to the kernel, copied byte by
 * byte. Blocking; thread-safe; not for signal handlers (it allocates). */

#include <stdbool.h>

/* Gives the directory `to` those of the directory at the path `from`, removes those it has and that one has
 * not, and reads them back. `in_equal`: the directory that `to` lies in has been made equal to `from`, so what `to` has from
 * above, if it has none of its own, is equal. 0, RECORD_WHY_ATTRIBUTES if they are not equal then, or -ENOMEM. Those that the
 * file system or the security policy keeps for itself, and those that the caller may not read, are left
 * alone. */
int attributes_copy(const char *from, int to, bool in_equal);

/* Does this one say anything that a mirror must say too? */
bool attributes_carried(const char *name);
