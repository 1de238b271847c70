/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What every rank goes through before its program: on a pretended node it is told which one, and it is proved
 * that the shim is in place. The launcher has set LD_PRELOAD and SHUNT_ROOT for it, or this says that it has
 * not.
 *
 * The proof asks the shim itself: a root's .shunt is there for everybody but programs under a shim that can
 * serve that root. */

#include "cli/command.h"

#define PROOF_COMMAND "--rank"
enum { PROOF_FAILED = 97 };

extern const struct choice proof_choices[];
int proof_run(const struct command *, int argc, char **argv);
