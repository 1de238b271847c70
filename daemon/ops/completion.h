/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* How operations begin and end. */

#include "home/home.h"
#include "shuntd.h"

/* What follows where a process may begin: the directory changes, and what it will ask for next is asked for ahead. 0 or a fatal
 * -errno. */
int create_begins(struct shuntd *, struct operation *);
int unlink_begins(struct shuntd *, struct operation *);

/* How an operation ended: the index is told, waiters are woken. completion_settle_by_disk asks the file system. */
int completion_succeeded(struct shuntd *, struct operation *, const struct record_entry *made, struct dirid child);
/* ... as its process says, which is still there: what it made it may be about to rename (prefetch_keep). */
int completion_committed(struct shuntd *, struct operation *, const struct record_entry *made, struct dirid child);
/* ... what it has made it is renaming, by a grant for both (prefetch/grant.h). */
int completion_goes_on(struct shuntd *, struct operation *, uint64_t made);
int completion_failed(struct shuntd *, struct operation *);
int completion_settle_by_disk(struct shuntd *, struct operation *);
/* All that a client has left (0: all whose clients stopped waiting) is settled so. */
int completion_settle_client(struct shuntd *, uint64_t client);
/* All names that a daemon which has died held at this home: what is at their places is there. */
int completion_settle_member(struct shuntd *, uint16_t member);
/* The two operations of a rename; renamed: MESSAGE_RENAMED, as its sender or the disk tells it. */
int completion_pair(struct shuntd *, struct operation *from, struct operation *to, const struct message *renamed);
