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
/* Does anybody want to end, or hand over what he has, or has he? */
bool roles_are_leaving(const struct session *);
/* Is anybody lost who was not dropped yet? */
bool roles_have_lost(const struct session *);
/* Who sees a change through, the first of those who were homes; where none is left, of those who are to be;
 * 0: nobody. */
uint16_t roles_first(const struct session *);
/* Has a home died? Then none of those that are to be homes was one before. */
bool roles_begin_recovery(const struct session *);

/* Who can be reached comes, who wants to end goes. False: nothing changes. */
bool roles_change(struct session *);
/* A home has died: nobody hands anything over. */
void roles_set_recovery(struct session *);
/* All have done their part. */
void roles_finish(struct session *);
