/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* How the rooms of the daemon are connected. Calls go down: ops, membership, prefetch, coordinator, rpc, reply, home. Where a
 * lower room has something for a higher one (an item from another daemon, an operation that ends), its header declares a table
 * of handlers; the tables are filled here, at one place, and never change. */

struct shuntd;

/* Before anything is served. */
void rooms_connect(struct shuntd *);
