/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Where the other parts of shunt are: next to this executable, in the build directory or as installed. */

#include <limits.h>

/* Absolute, canonical. 0, or -1 after a complaint. */
int places_daemon(char to[PATH_MAX]);
int places_preload(char to[PATH_MAX]);
int places_shunt(char to[PATH_MAX]);
