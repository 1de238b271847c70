/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The directory ROOT/.shunt/session: epochs, and the files of a session next to them (WHAT.FOUNDED-ID), for
 * the other files of this room. `directory` is a descriptor of it. Blocking; thread-safe, one session by one thread at a time;
 * not for signal handlers. */

#include "session/session.h"

#define STORE_NAME_MAX 80

/* A descriptor or -errno. */
int store_open(const char *root);
/* Is it of a root that was copied, i.e. of another root? */
bool store_is_copied(int directory);
/* Parts a copy from the root that it was copied from: empties the directory and renews the stamp, unless it
 * is done already. */
int store_part(int directory, bool *parted);

/* Memory for the members of a session; those that it has stay. 0 or -ENOMEM. */
int store_room(struct session *, size_t room);
/* What is in force, with room for one more member: also a session that has ended (count is 0). -ENOENT: there
 * never was an epoch; then *session is zero. */
int store_read(int directory, struct session *);
/* The number of the last epoch, 0 if there never was one. 0 or -errno. */
int store_highest(int directory, uint64_t *epoch);
/* 0; -EAGAIN: the epoch is taken, see what is in force. A caller that was told 0 must read again, too: a number may
 * have been given, followed and removed before this one was linked to it. */
int store_publish(int directory, const struct session *);

/* Removes what belongs to sessions founded before that epoch, and temporaries. */
void store_sweep(int directory, uint64_t founded);
/* Removes what belongs to this one. */
void store_clear(int directory, const struct session *);

/* Sets the time of a member's file, and makes it if it is not there. 0 or -errno. */
int store_beat(int directory, const struct session *, uint16_t number);

/* WHAT.FOUNDED-ID, and .NUMBER for a number that is not 0. */
void store_name(char to[STORE_NAME_MAX], const char *what, const struct session *, uint16_t number);

/* The key and the probe of a session that is being founded. 0 or -errno; what they made, store_clear removes.
 */
int key_make(int directory, const struct session *);
int probe_make(int directory, struct session *);
/* 0; -EXDEV: here is something else than the founder saw. */
int probe_check(int directory, const struct session *);
