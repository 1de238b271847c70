/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Names that were asked for ahead (prefetch.h) are granted to the process that is to ask for them, in its queue pair
 * (request/channel.h): it takes a grant, makes, removes or renames the file and says so there, without a question and without
 * waking the daemon.
 *
 * To this daemon a grant that was taken is a CREATE, UNLINK or RENAME that was answered at that very moment, and one that is
 * done a COMMIT, UNLINKED or RENAMED that lies in the ring: it is seen when the queue pair is looked at, and before anything
 * is decided about that name. What is only granted is taken back before anything happens with its operation; then it is an
 * operation like others that are prefetched. A rename's two names are granted as one, and its operations are each other's
 * partners while they are; taken back, they are apart again. So it is with a create and the rename of what was made, which one
 * grant can be: once that is being renamed, the create is over, and its operation is that of a rename's old name. Till then a
 * create that is done is left as it is, for as long as its thread takes no other name. So each rule about operations holds, if
 * nothing is done with one that is granted before it was settled here:
 *
 * - serve() settles the names of each request;
 * - a daemon that is told that an end is awaited (NOTIFY_AWAITED) settles that operation, and so does one that begins to give
 * back;
 * - a process that ends has its grants settled before what it left is (completion_settle_client);
 * - before the times of a directory are set or asked for, all grants are seen: what was taken changed them when it was taken;
 *   and so before a status is told, a PING is answered, and this daemon ends;
 * - where creates are to go elsewhere from now on, what is granted there is taken back.
 *
 * The functions answer 0 or a fatal -errno unless they say otherwise. */

#include "home/home.h"
#include "shuntd.h"

/* What the rooms above do with an operation that a client took by a grant. 0 or a fatal -errno. */
struct prefetch_handlers {
    int (*create_begins)(struct shuntd *, struct operation *);
    int (*create_goes_on)(struct shuntd *, struct operation *, uint64_t made); /* what was made is being renamed */
    int (*unlink_begins)(struct shuntd *, struct operation *);
    int (*rename_begins)(struct shuntd *, struct operation *from);
    int (*rename_succeeded)(struct shuntd *, struct operation *from);
    operation_next *rename_answered; /* what follows an answer about one of a rename's names */
    int (*succeeded)(struct shuntd *, struct operation *, const struct record_entry *made, struct dirid child);
    int (*settle_by_disk)(struct shuntd *, struct operation *);
};

int grant_create(struct grants **);
void grant_destroy(struct grants *);

/* Grants what was predicted of `client`, on whose queue pair it is, and is held. False: there is no room. */
bool grant_make(struct shuntd *, struct operation *, uint64_t client);
/* The same of a rename, or of a create and the rename that is to follow: both names are held, and the file stays in its leaf.
 */
bool grant_make_pair(struct shuntd *, struct operation *from, struct operation *to, uint64_t client);
/* Is anything granted, or at work on what was? */
bool grant_is_any(const struct shuntd *);
/* How many names are. */
unsigned grant_count(const struct shuntd *);
/* What is in the way of the next grant in a queue pair; NULL: nothing. */
struct operation *grant_in_the_way(const struct shuntd *, uint32_t qp);
/* True: nobody has taken it, and nobody can any more; it is granted to nobody. */
bool grant_take_back(struct shuntd *, struct operation *);
/* The same for all that is granted on that operation's queue pair, and is of its kind, as far as nobody has taken it. */
void grant_take_back_like(struct shuntd *, const struct operation *last);
/* It is taken back, or its process's, or over: the operation is to be found again. */
int grant_settle(struct shuntd *, struct operation *);
/* The same for all of a directory, or of a client (0: of all). */
int grant_settle_dir(struct shuntd *, const struct home_dir *);
int grant_settle_client(struct shuntd *, uint64_t client);
/* The same for what was taken and done; what was not stays granted. */
int grant_see_all(struct shuntd *);
/* ... in a queue pair, before what its process asks for since; or in those queue pairs whose processes have come by. What was
 * made last, and may be renamed, stays as it is. */
int grant_see_qp(struct shuntd *, uint32_t qp);
int grant_step(struct shuntd *);
/* Its operation ends. */
void grant_ends(struct shuntd *, struct operation *);
