/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What every rank goes through before its program: on a pretended node it is told which one, and it is proved
 * that the shim is in place. The launcher has set LD_PRELOAD and SHUNT_ROOT for it, or this says that it has
 * not.
 *
 * The proof asks the shim itself: a root's .shunt is there for everybody but programs under a shim that can
 * serve that root. */

#include "verb.h"

#define RANK "--rank"
enum { RANK_NOT_PROVED = 97 };

/* The number that the launcher has given to this process, or -1. Pure. */
long rank_number(char *const environment[]);

extern const struct choice rank_choices[];
int rank_run(const struct verb *, int argc, char **argv);
