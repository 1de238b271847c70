/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* DIRECTORY/deep: directories in directories, down to where no path reaches any more, with a file `in` in
 * each. The working directory is the same afterwards. A root is no place for it: shunt has to tell the paths
 * of its directories. */

#define DEEPER_LEVELS 24
#define DEEPER_LENGTH 230

void deeper_make(const char *directory);
void deeper_remove(const char *directory);
