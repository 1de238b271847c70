/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Daemons that several jobs of a user use: the first one starts the daemon of a node and a root, the last one stops it
 * (request/users.h). A batch system ends a daemon with the job that started it; then one of the others starts it again. */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/roots.h"
#include "serving/daemon.h"
#include "session/session.h"

struct share {
    const char *root;
    char run_dir[SESSION_RUN_MAX];
    int users;  /* the file of the users; -1: there can be none, so that this is the only one */
    off_t mine; /* this user's number; 0: it is none (yet) */
    int pidfd;  /* the process whose end is the end of the daemon; -1: it is not watched any more */
};

struct shares {
    const struct daemon_options *options;
    size_t count;
    size_t left; /* how many others go on with, once this user has left */
    struct share at[ROOTS_MAX];
};

/* Returns when all serve; what is given must last. 0; -1 after a complaint, or when a signal came that the caller catches
 * (stopping.h), and then none is used, and none that was started here serves any more. */
int shares_enter(struct shares *, const struct roots *, const struct daemon_options *);
/* Stops the daemons that nobody else uses, every one whatever happens to the others. 0, or -1 after a complaint. */
int shares_leave(struct shares *);
/* Descriptors to wait for, one for each; `to` has room for ROOTS_MAX. How many. */
size_t shares_watch(const struct shares *, struct pollfd *to);
/* Once one of them had something: a daemon that was killed serves again when it returns. 0; -1: one has ended otherwise, or
 * could not be started (after a complaint); that is told once. */
int shares_renew(struct shares *, const struct pollfd *watched);
/* Does a daemon serve the root as that node here that counts no users, as of `shunt start`? */
bool share_is_started(const char *root, const char *node);
/* Forgets users that were killed, before a daemon is started that nobody is to stop but `shunt stop`. */
void share_forget(const char *root, const char *node);
