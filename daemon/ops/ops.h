/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One file for each operation of a client: what it means, and how it goes. WIRE.md lists the messages.
 *
 * Everything here is called by main's thread within a batch, at the end of which the answers reach the clients. */

#include "listen/listen.h"
#include "reply/reply.h"
#include "rpc/collective.h"
#include "shuntd.h"

/* Serves one request: 0, or a fatal -errno. */
int ops_serve(struct shuntd *, struct listen_request *);
/* Goes on with what has waited and need not any more: home requests, notifications, collectives. 0 or a fatal -errno. */
int ops_resume(struct shuntd *);

/* The operations. Each fills the answer and returns REPLY_ANSWER, or one of the others, or a fatal -errno. */
typedef int ops_function(struct shuntd *, const struct listen_request *, struct message *answer);
ops_function ops_lookup, ops_create, ops_commit, ops_abort, ops_adopt, ops_vanished, ops_unlink, ops_unlinked, ops_rename,
    ops_renamed, ops_rmdir, ops_promote, ops_about_directory, ops_status, ops_ping, ops_place_of, ops_list, ops_looked,
    ops_stop;
/* The home of one of a rename's names has answered what it was asked for at once. */
operation_next rename_answered;
/* What a grant of a rename lets follow (prefetch/grant.h): it was taken; it is done. 0 or a fatal -errno. */
int rename_begins(struct shuntd *, struct operation *from);
int rename_succeeded(struct shuntd *, struct operation *from);
/* Listings that waited for the homes to be others. */
int list_again(struct shuntd *);
void list_free(struct shuntd *);

/* What a daemon does in a collective (rpc/collective.h). */
collective_part directory_part_sync, directory_part_watch, directory_part_moved, list_part, status_part, status_part_stop;
size_t status_add_page(char *to, size_t used, const char *from, size_t size);
/* All daemons hear that directories have other places; then comes `done`, or NULL. 0 or a fatal -errno. */
int directory_tell_moved(struct shuntd *, const char *from, const char *to, collective_done *done, void *context);
