/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* May a session whose members are on other hosts be taken over? Only if all of them were beating once and are
 * silent now: a member that is alone in its session does not heartbeat, so nobody can tell from here whether it
 * lives. */

#include "shuntd.h"

enum takeover {
    TAKEOVER_FREE = 0, /* all were silent for `patience`, or the session has ended meanwhile */
    TAKEOVER_HERE,     /* *who lives on this host */
    TAKEOVER_ALONE,    /* *who sends no heartbeat, since it is or was alone */
    TAKEOVER_BEATS,    /* *who sends heartbeats */
    TAKEOVER_CHANGED,  /* somebody published another epoch meanwhile */
};

/* Watches, for `patience` if nothing moves; ends early with -EINTR when *stop is set. The members of this
 * host must be dead. One of the above, or -errno. */
int takeover_watch(const char *root, const struct session *, uint64_t patience, volatile int *stop,
                   const struct session_member **who);
