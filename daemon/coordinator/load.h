/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A directory is loaded: its names are listed on disk, and every home is told those that it is home of. */

#include "listen/listen.h"
#include "peer/peers.h"
#include "rpc/collective.h"
#include "shuntd.h"

/* A process wants to use a directory: its coordinator is asked to load it. As a function of ops/ (reply.h says what it
 * answers). */
int load_request(struct shuntd *, const struct listen_request *, struct message *answer);
collective_part load_part_loaded;
