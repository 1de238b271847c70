/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A name that another node's daemon is home of: this node's index says nothing of it. It is remembered where it was seen last
 * (names_recall), several are asked for at once (bulk_lookup.h), or its home is asked. Async-signal-safe, thread-safe. */

#include "shim/target.h"

/* Is it one, and nothing is known of it? */
bool remote_is(const struct target *);
/* Somebody of this node has asked before, and the file is where it was; or, with TARGET_LOOKS, the call finds that out. */
bool remote_recall(struct target *, unsigned want);
/* What the index cannot say of the name. `again`: its home is asked, whatever is remembered. 0 or -errno, -ESTALE as
 * target_ask_here. */
int remote_look(struct target *, unsigned want, bool again);
/* It was found in the index: the owner of its leaf is told, if it has to know. */
void remote_tell_look(const struct target *);
/* A file was made where the answer in scratch says: this node remembers where, if another one's daemon is home of it. */
void remote_made(struct target *, const struct statx *);
