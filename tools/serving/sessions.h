/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What is served on this host, and what daemons that were killed left here: a session for each run directory, of one user or,
 * for root, of all. Of other users nothing is mapped, and nothing that they could have written is believed: a process counts
 * as a daemon if it is a shuntd of the run directory's owner. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "serving/counters.h"
#include "session/run_dirs.h"

enum session_state {
    SESSIONS_SERVES,
    SESSIONS_RESTARTS,  /* its daemon has crashed, and its supervisor starts another one */
    SESSIONS_ENDED,     /* its daemon was killed: files are left */
    SESSIONS_CONTAINER, /* it serves in another PID namespace */
    SESSIONS_UNKNOWN,   /* of another version of shunt */
    SESSIONS_STATES
};

struct session_here {
    char run_dir[SESSION_RUN_MAX + NAME_MAX + 2];
    uid_t uid; /* whose it is */
    gid_t gid;
    enum session_state state;
    bool is_described; /* `about` was there */
    struct run_dirs_about about;
    pid_t daemon, supervisor; /* 0: none lives */
    uint64_t file_bytes;      /* of the run directory, as allocated */
    uint64_t daemon_bytes;    /* what the daemon's process alone takes */
    pid_t *clients;           /* processes that use it, once each */
    size_t client_count;
    int counters_error; /* 0: there are counters, once sessions_count was called */
    struct counters counters;
};

struct sessions {
    size_t count;
    struct session_here **at;
    bool is_partial; /* one could not be read, which was complained of, and is left out */
};

/* Looks at the run directories of `user`, (uid_t)-1: of all whose it may look at. 0, or -1 after a complaint. Either way
 * sessions_finish is to be called. */
int sessions_look(struct sessions *, uid_t user);
void sessions_finish(struct sessions *);
/* Looks at one again: where its daemon is now. 0, or -errno: it cannot be told. */
int sessions_look_again(struct session_here *);
/* Is that process a shuntd of its user, for its root and node? Also when its channel says so no more, since it is about to end.
 */
bool sessions_is_of(const struct session_here *, pid_t);
/* Does a shuntd of its user live that may be about to use its run directory? One that is not described may be any's. */
bool sessions_is_beginning(const struct sessions *, const struct session_here *);
/* A process of its user's which runs under shunt with its root and is of another job than the session, or of none; 0: there is
 * none. */
pid_t sessions_other_job(const struct session_here *);
/* Asks its daemon for its counters; root asks another user's as that user. */
void sessions_count(struct session_here *);
/* One word for people. */
const char *sessions_state(enum session_state);
/* Reads a user's name or number: 0, or -1 after a complaint. */
int sessions_user(const char *name, uid_t *);
