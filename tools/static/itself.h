/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Symbolic links to what /proc shows of the process that looks (/proc/self/cwd, /dev/fd/5): on the way of a path, or at its
 * end, they lead a caller elsewhere than they lead us. */

#include <stdbool.h>
#include <sys/types.h>

#include "where.h"

/* What follows /proc/self or /proc/thread-self in the text of a path, past the slashes; NULL: it does not begin so. */
const char *itself_after(const char *path);

/* May an absolute text, which leads to a root, lead there through such a link? `follows`: one at its end counts. False is
 * certain; of most it is told by one open. */
bool itself_may_be_on_the_way(const char *text, bool follows);

/* Follows an absolute text by hand. 1: such a link was there; the text is what the path means to that thread by now, with its
 * number spelt out. 0: there was none. -errno: it cannot be told. */
int itself_spell_out(pid_t, char text[WHERE_TEXT], bool follows);
