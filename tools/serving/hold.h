/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A tool that changes what is on disk holds the root while it does, as a session does: no daemon starts
 * meanwhile, and no second export. */

#include <stdbool.h>

#include "session/session.h"
#include "union/listing.h"

struct hold {
    const char *root;
    uint64_t id;
    uint16_t number;
};

/* Is a session alive, or maybe alive, in this root? With a complaint of what to do if so. */
bool hold_is_taken(const char *root);
/* 0, or -1 after a complaint. `what` is the subcommand. A session of another host that is dead is taken over first. */
int hold_take(struct hold *, const char *root, const char *what);
/* The same; 1, without a word: somebody else of the same user has it, or has made it plain meanwhile. */
int hold_take_or_yield(struct hold *, const char *root, const char *what);
/* The same in the place of a session of that epoch, none of whose members can do anything any more. 0; -EBUSY: it is not that
 * any more, or a member lives here; -1 after a complaint. */
int hold_supersede(struct hold *, const char *root, const char *what, uint64_t epoch);
/* Once it is held: branches may have been renamed since the root was opened. 0, or -1 after a complaint. */
int hold_look_at_root(struct union_root *);
/* No more heartbeats, which are files: what is left is done within a lease. */
void hold_rest(void);
void hold_release(const struct hold *);
