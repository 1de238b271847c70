/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A session whose members are on other hosts, and dead, is taken over: the batch system says that their job has ended, or
 * their heartbeats stand still for a lease. docs/architecture.md tells why no member can be alive then. */

#include <stdbool.h>
#include <stdint.h>

#include "batch/scheduler.h"
#include "session/session.h"

enum takeover {
    TAKEOVER_FREE = 0,  /* every member has ended, or was silent for `patience` */
    TAKEOVER_LIVES,     /* *who does */
    TAKEOVER_SUSPENDED, /* *who stands still: its job is suspended */
    TAKEOVER_CHANGED,   /* somebody published another epoch meanwhile */
};

/* What is known of a session that is watched. */
struct takeover_watch {
    const char *root;
    const struct session *session;
    uint64_t patience;
    bool anyhow; /* heartbeats alone decide: the batch system is not asked */
    bool told;   /* that it is watched */
    const struct session_member *who;
    struct session_pulse *pulses; /* as the members */
    enum scheduler_word *words;   /* likewise */
    uint64_t ask;                 /* when to ask the next time */
};

/* Watches, for `patience` if nothing moves and nothing is known; a heartbeat that moves ends it, unless the job is about
 * to end. -EINTR: a signal came (stopping.h). One of the above, or -errno. */
int takeover_watch(struct takeover_watch *);

/* Looks at the session of a root before a daemon is started: one that is dead is taken over and ended, with one line that says
 * so; one that lives, or may live, is left as it is; a tool that holds the root is waited for. A wait of more than 3 s has one
 * line that says what for. `anyhow` is --takeover. 0; -1 after a complaint, or when a signal came. */
int takeover_settle(const char *root, bool anyhow);
/* The same before a tool holds the root, which waits for no other tool but one that takes it over. */
int takeover_settle_for_tool(const char *root);
