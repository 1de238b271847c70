/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What a command says. */

#include <stddef.h>

/* Runs it to its end, without the shim, standard input and standard error being /dev/null; `to` gets the beginning of its
 * standard output, terminated. The exit status, 128 and the signal, or -errno: it could not be run. */
int capture(char *const words[], char *to, size_t size);
/* The same with what it says on standard error among it, in English. */
int capture_all(char *const words[], char *to, size_t size);
