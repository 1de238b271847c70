/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Where the other parts of shunt are: next to this executable, in the build directory or as installed. */

#include <limits.h>
#include <stdbool.h>

/* Absolute, canonical. 0, or -1 after a complaint. */
int places_daemon(char to[PATH_MAX]);
int places_preload(char to[PATH_MAX]);
int places_launch(char to[PATH_MAX]);
int places_shunt(char to[PATH_MAX]);
/* ... of `shunt mount`, which is an option of the build. */
int places_mount(char to[PATH_MAX]);
/* The helper of static programs. False: it is not there, which is not complained about. */
bool places_static(char to[PATH_MAX]);
/* The site's file in the tree that this program is of, which need not be there; into `to`, or constant. NULL: it cannot be
 * told. */
const char *places_site_file(char to[PATH_MAX]);
