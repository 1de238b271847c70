/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What members are to the names (enum session_part), and how that changes. Pure. */

#include "session/session.h"

/* Is it home from now on? */
bool roles_is_home(uint8_t part);
/* Was it taken for lost, and not dropped yet? */
bool roles_is_lost(uint8_t part);
/* The homes from now on, and those of before: how many, at most SESSION_MEMBERS_MAX. */
size_t roles_now(const struct session *, uint16_t *to);
size_t roles_before(const struct session *, uint16_t *to);
/* Are they not the same? */
bool roles_are_moving(const struct session *);
/* Does a member want to end, or hand over what it has, or has it? */
bool roles_are_leaving(const struct session *);
/* Is a member lost that was not dropped yet? */
bool roles_have_lost(const struct session *);
/* The member that sees a change through, the first of those that were homes; where none is left, of those that are to be;
 * 0: nobody. */
uint16_t roles_first(const struct session *);
/* Has a home died? Then none of those that are to be homes was one before. */
bool roles_begin_recovery(const struct session *);

/* Members that can be reached become homes, those that want to end cease to be. False: nothing changes. */
bool roles_change(struct session *);
/* A home has died: nobody hands anything over. */
void roles_set_recovery(struct session *);
/* All have done their part. */
void roles_finish(struct session *);

/* What members are, one after the other; and back to that. */
void roles_keep(const struct session *, uint8_t parts[SESSION_MEMBERS_MAX]);
void roles_restore(struct session *, const uint8_t parts[SESSION_MEMBERS_MAX]);
