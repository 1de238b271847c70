/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The preload library begins. A tool that is an ordinary client of a daemon by itself (tools/leaving/live.c) has no part in
 * this. */

#include "shim/process.h"

/* -z initfirst makes this the first constructor of all; `environ` is not set yet, the arguments are. */
__attribute__((constructor)) static void start_process(int count, char *arguments[], char *environment[])
{
    process_start(environment);
}
