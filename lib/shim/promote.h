/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Moving a file of a branch to the trunk. */

#include "shim/target.h"

/* Moves it to the trunk unless it is there; looks it up again. 0 or -errno. */
int promote_target(struct target *);
