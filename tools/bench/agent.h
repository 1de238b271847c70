/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One for each process of a benchmark: starts what is needed next to the conductor (the daemon of its node, if
 * it is the first there, and a worker for native runs and one under the shim), and ends it. When the
 * conductor's end of the socket closes, however that comes, it does so by itself. */

#include "bench/rendezvous.h"
#include "bench/plan.h"

/* `directory` is canonical. The exit status. *was_heard: the conductor has said something, so it is the one that goes on. */
int agent_run(const struct plan *, const char *directory, uint32_t rank, const struct rendezvous *, bool *was_heard);
/* Of a process that was started by a launcher and is not the first: looks for that first. */
int agent_join(const struct plan *, const char *directory);
