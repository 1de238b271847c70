/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The parts of operate_rename: one attempt each, with signals blocked. 0, -errno, or TARGET_RETRY: to be looked up and tried
 * once more. */

#include "shim/rename_checks.h"

int operate_rename_out(struct rename *);     /* out of the root, in operate_rename_across.c */
int operate_rename_in(struct rename *);      /* into the root, there too */
int operate_rename_between(struct rename *); /* from one root into another one, there too */

/* The rename itself, from place to place. */
int operate_rename_places(struct target *from, struct target *to, unsigned flags);
