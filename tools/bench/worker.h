/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The process that works: `shunt bench-worker TOP`, hidden; its standard input is the socket to the
 * conductor. It ends when the conductor closes that. */

#include "cli/command.h"

#define WORKER "bench-worker"
int worker(const struct command *, int argc, char **argv);
