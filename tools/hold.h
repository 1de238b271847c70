/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A tool that changes what is on disk holds the root while it does, as a session does: no daemon starts
 * meanwhile, and no second export. */

#include <stdbool.h>

#include "session/session.h"

struct hold {
    const char *root;
    uint64_t id;
    uint16_t number;
};

/* Is a session alive, or maybe alive, in this root? With a complaint of what to do if so. */
bool hold_is_taken(const char *root);
/* 0, or -1 after a complaint. `what` is the subcommand. */
int hold_take(struct hold *, const char *root, const char *what);
void hold_release(const struct hold *);
