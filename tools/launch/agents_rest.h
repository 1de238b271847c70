/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Agents whose daemons have stopped, and which stay for the export: each renames what its node made (owner.h). */

#include "launch/agents.h"

/* Is any on another node, or a pretended one? */
bool agents_rest_has_others(const struct agents *);
/* As agents_stop, but that agents stay: those whose daemons stopped are the owners of their branches. */
int agents_rest_begin(struct agents *, struct signal_wait *);
/* They are there until agents_rest_end. */
struct owners agents_rest_owners(struct agents *);
/* Tells them to end, and waits for that. */
void agents_rest_end(struct agents *);
