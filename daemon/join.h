/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The session of a root: this daemon joins it, or founds one. On failure a sentence was printed (complaint.h), but for
 * START_AGAIN. */

#include "shuntd.h"

/* Before anything is written under the root: a start that is refused leaves no trace. What else may be wrong
 * with a session, join_or_found finds out. */
int join_check(struct shuntd *);
/* From here on it is a member. */
int join_or_found(struct shuntd *);
/* Once it can be asked: it learns from the home what the others know, or is the home itself. */
int join_enter(struct shuntd *);
