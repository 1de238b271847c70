/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "takeover.h"

#include <errno.h>
#include <stdlib.h>

struct failure_detector {
    const char *root;
    const struct session *session;
    struct session_pulse *pulses; /* as the members */
    uint64_t patience;
    const struct session_member *who;
};

static int takeover_check_epoch(const struct failure_detector *watch)
{
    struct session now;
    int code = session_read(watch->root, &now);
    if (code == 0)
        code = now.id == watch->session->id && now.epoch == watch->session->epoch ? 0 : TAKEOVER_CHANGED;
    session_finish(&now);
    return code;
}

/* -EAGAIN: it is not silent for long enough yet. */
static int takeover_look_at(struct failure_detector *watch, size_t index)
{
    const struct session_member *member = &watch->session->members[index];
    struct session_pulse *pulse = &watch->pulses[index], before = *pulse;
    watch->who = member;
    int lives = session_lives(member);
    if (lives >= 0)
        return lives == 1 ? TAKEOVER_HERE : 0;
    int code = session_observe(watch->root, watch->session, member->number, pulse);
    if (code < 0)
        return code;
    if (pulse->beat == 0)
        return TAKEOVER_ALONE;
    if (before.read > 0 && pulse->beat != before.beat)
        return TAKEOVER_BEATS;
    return pulse->still >= watch->patience ? 0 : -EAGAIN;
}

static int takeover_look_at_all(struct failure_detector *watch)
{
    int code = takeover_check_epoch(watch);
    bool waits = false;
    for (size_t i = 0; i < watch->session->count && (code == 0 || code == -EAGAIN); i++) {
        code = takeover_look_at(watch, i);
        waits |= code == -EAGAIN;
    }
    return code == 0 && waits ? -EAGAIN : code;
}

static int takeover_watch_all(struct failure_detector *watch, volatile int *stop)
{
    const struct timespec pause = clock_split(SESSION_BEAT / 8);
    int code;
    while ((code = takeover_look_at_all(watch)) == -EAGAIN) {
        clock_sleep(&pause);
        if (*stop)
            return -EINTR;
    }
    return code == -ENOENT ? TAKEOVER_FREE : code;
}

int takeover_watch(const char *root, const struct session *session, uint64_t patience, volatile int *stop,
                   const struct session_member **who)
{
    struct failure_detector watch = {.root = root, .session = session, .patience = patience};
    /* Alone in its session, it has no reason to heartbeat. */
    *who = session->members;
    if (session->count == 1)
        return session_lives(session->members) == -EREMOTE ? TAKEOVER_ALONE : TAKEOVER_HERE;
    watch.pulses = calloc(session->count, sizeof *watch.pulses);
    if (watch.pulses == NULL)
        return -ENOMEM;
    int code = takeover_watch_all(&watch, stop);
    free(watch.pulses);
    *who = watch.who;
    return code;
}
