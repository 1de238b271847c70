/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The processes of other nodes, as their daemons tell of them. One is there from its first message until its
 * daemon says that it ended. Main's thread only. */

#include <stdbool.h>
#include <stdint.h>

struct far;

int far_create(struct far **);
/* Takes NULL. */
void far_destroy(struct far *);

/* 0, also if it is known already; -ENOMEM. */
int far_add(struct far *, uint64_t client);
void far_remove(struct far *, uint64_t client);
bool far_is_there(const struct far *, uint64_t client);
/* Any of that member, or 0. Looks at all: for when a member leaves. */
uint64_t far_any(const struct far *, uint16_t member);

/* The request `tag` of that lane is not waited for any more. A later one of the same lane takes its place;
 * where there is no memory to keep it, the flight stays until the client ends. */
void far_give_up(struct far *, uint64_t client, uint32_t lane, uint32_t tag);
bool far_gave_up(const struct far *, uint64_t client, uint32_t lane, uint32_t tag);
