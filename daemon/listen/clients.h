/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Which processes use the channel, and when one of them ends: a thread waits on their pidfds. */

#include <stdbool.h>
#include <sys/types.h>

struct clients;

/* `ring` is called from the waiting thread after a death was noted. */
int clients_create(struct clients **, void (*ring)(void *), void *context);
void clients_destroy(struct clients *);

/* Main's thread: watches that process from now on; known ones cost a look into a table. One that has ended
 * already is noted as dead. */
void clients_watch(struct clients *, pid_t);
/* Main's thread: is the end of all of them told? Not of those for which no descriptor could be spared: */
bool clients_are_followed(const struct clients *);
/* ... looks at those, now and then. */
void clients_look(struct clients *);
/* Main's thread: the next that ended, or 0; it is not watched any more. */
pid_t clients_next_death(struct clients *);
