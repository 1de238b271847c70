/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A home that has died, or is lost, hands nothing over: all begins again. What homes knew is forgotten, since
 * it is on disk, and read again directory by directory as it is used. But for one thing, what processes hold
 * at this moment: each daemon tells it of its own processes to the homes of these names, and that this was all once what it was
 * at work on as a coordinator in trunk directories (a marker, mirrors, conflicts) has ended. Until all have, and lost members
 * are dropped, no home answers, or takes a directory for known. That a directory is watched is told likewise. What somebody
 * said before, of a name that ended or of an answer, says nothing any more; it can be told by its epoch. */

#include "shuntd.h"

/* In the epoch route->epoch it has begun: before this daemon knows the homes. */
void recovery_forget(struct shuntd *);
/* And when it does: what is held here is told, what waited for a daemon that is gone is asked again. 0 or a
 * fatal -errno. */
int recovery_report(struct shuntd *);
/* Within a batch: tells that this was all, if that is due. 0 or a fatal -errno. */
int recovery_tell_end(struct shuntd *);
/* From those that are no members any more nothing is waited for. 0 or a fatal -errno. */
int recovery_members_gone(struct shuntd *);
