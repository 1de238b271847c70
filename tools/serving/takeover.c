/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serving/takeover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/stopping.h"
#include "config/config.h"
#include "serving/hold.h"

#define TAKEOVER_NODE "takeover" /* what a tool is called that holds the root for this */
#define LOOKS (SESSION_BEAT / 8)
#define ASKS CLOCK_SECOND
#define ASKS_RUNNING (5 * CLOCK_SECOND)
#define TELLS (3 * CLOCK_SECOND) /* a heartbeat is seen sooner than this */

static int takeover_check_epoch(const struct takeover_watch *watch)
{
    struct session now;
    int code = session_read(watch->root, &now);
    if (code == 0)
        code = now.id == watch->session->id && now.epoch == watch->session->epoch ? 0 : TAKEOVER_CHANGED;
    session_finish(&now);
    return code == -ENOENT ? TAKEOVER_CHANGED : code;
}

/* -EAGAIN: it is not known yet. A member whose job is about to end still heartbeats. */
static int takeover_look_at(struct takeover_watch *watch, size_t index)
{
    const struct session_member *member = &watch->session->members[index];
    const enum scheduler_word word = watch->words[index];
    struct session_pulse *pulse = &watch->pulses[index], before = *pulse;
    watch->who = member;
    int lives = session_lives(member);
    if (lives >= 0)
        return lives == 1 ? TAKEOVER_LIVES : 0;
    if (word == SCHEDULER_GONE)
        return 0;
    if (word == SCHEDULER_SUSPENDED)
        return TAKEOVER_SUSPENDED;
    int code = session_observe(watch->root, watch->session, member->number, pulse);
    if (code < 0)
        return code;
    if (before.read > 0 && pulse->beat != before.beat && word != SCHEDULER_ENDING)
        return TAKEOVER_LIVES;
    return pulse->still >= watch->patience ? 0 : -EAGAIN;
}

/* A job that is about to end is asked for again; so is one that runs, for as long as its members are silent. */
static void takeover_ask(struct takeover_watch *watch)
{
    if (watch->anyhow || clock_monotonic() < watch->ask)
        return;
    scheduler_ask(watch->session, watch->words);
    const uint64_t now = clock_monotonic();
    watch->ask = UINT64_MAX;
    for (size_t i = 0; i < watch->session->count; i++) {
        const uint64_t pause = watch->words[i] == SCHEDULER_ENDING ? ASKS : ASKS_RUNNING;
        const bool is_asked = watch->words[i] == SCHEDULER_ENDING || watch->words[i] == SCHEDULER_RUNS;
        if (is_asked && now + pause < watch->ask)
            watch->ask = now + pause;
    }
}

static int takeover_look_at_all(struct takeover_watch *watch)
{
    int code = takeover_check_epoch(watch);
    bool waits = false;
    for (size_t i = 0; i < watch->session->count && (code == 0 || code == -EAGAIN); i++) {
        code = takeover_look_at(watch, i);
        waits |= code == -EAGAIN;
    }
    return code == 0 && waits ? -EAGAIN : code;
}

static void takeover_tell_watch(struct takeover_watch *watch, uint64_t began)
{
    char words[512], job[SESSION_JOB_MAX + 16];
    if (watch->told || clock_monotonic() - began < TELLS)
        return;
    watch->told = true;
    session_describe(watch->session, watch->who, words, sizeof words);
    scheduler_describe(watch->who->job, job, sizeof job);
    if (watch->words[watch->who - watch->session->members] == SCHEDULER_ENDING)
        error_report("%s: %s, whose %s is about to end, which is waited for", watch->root, words, job);
    else
        error_report("%s: %s, which is taken over after %llu s without a heartbeat", watch->root, words,
                     (unsigned long long)(watch->patience / CLOCK_SECOND));
}

int takeover_watch(struct takeover_watch *watch)
{
    const struct timespec pause = clock_split(LOOKS);
    const size_t count = watch->session->count;
    const uint64_t began = clock_monotonic();
    int code = -ENOMEM;
    watch->who = watch->session->members;
    watch->pulses = calloc(count, sizeof *watch->pulses);
    watch->words = calloc(count, sizeof *watch->words);
    watch->ask = 0;
    while (watch->pulses != NULL && watch->words != NULL) {
        takeover_ask(watch);
        code = takeover_look_at_all(watch);
        if (code != -EAGAIN || stopping())
            break;
        takeover_tell_watch(watch, began);
        clock_sleep(&pause);
    }
    return code == -EAGAIN ? -EINTR : code;
}

/* Did a batch system say of each member of another host that it has ended? Else only its silence did. */
static bool takeover_is_certain(const struct takeover_watch *watch)
{
    for (size_t i = 0; i < watch->session->count; i++)
        if (watch->words[i] != SCHEDULER_GONE && session_lives(&watch->session->members[i]) != 0)
            return false;
    return true;
}

/* A member that sent a heartbeat between the last look and the moment when it was superseded has a lease from then on, at most.
 * No signal ends this: the next one to come would not know. */
static void takeover_outlast(const struct takeover_watch *watch)
{
    const struct timespec pause = clock_split(CLOCK_SECOND / 10);
    const uint64_t until = clock_boot() + watch->session->lease;
    while (clock_boot() < until)
        clock_sleep(&pause);
}

/* `member`: one that it was taken over from. */
static void takeover_tell(const struct takeover_watch *watch, const struct session_member *member, bool is_certain)
{
    char words[512], job[SESSION_JOB_MAX + 16];
    session_describe(watch->session, member, words, sizeof words);
    scheduler_describe(member->job, job, sizeof job);
    if (is_certain)
        error_report("%s: taken over, since %s has ended (it was %s)", watch->root, job, words);
    else
        error_report("%s: taken over, since no heartbeat came for %llu s (it was %s)", watch->root,
                     (unsigned long long)(watch->patience / CLOCK_SECOND), words);
}

/* The session is superseded by one of this tool, so that it is over; what its members still want to make in their branches by
 * their names is not to be; then this one ends, too. 0; -EBUSY: another one was first; -1 after a complaint. */
static int takeover_take(const struct takeover_watch *watch)
{
    struct hold hold;
    const bool is_certain = takeover_is_certain(watch);
    int code = hold_supersede(&hold, watch->root, TAKEOVER_NODE, watch->session->epoch);
    if (code != 0)
        return code;
    if (!is_certain)
        takeover_outlast(watch);
    for (size_t i = 0; i < watch->session->count && code == 0; i++)
        if ((code = session_fence(watch->root, watch->session->members[i].branch)) != 0)
            error_report("%s: branch %s of a node that has ended cannot be renamed: %s (check permissions and quota of "
                         "%s/.shunt/b and run this again)",
                         watch->root, watch->session->members[i].branch, strerror(-code), watch->root);
    hold_release(&hold);
    if (code == 0)
        takeover_tell(watch, session_living(watch->session), is_certain);
    return code == 0 ? 0 : -1;
}

static int takeover_refuse_suspended(const struct takeover_watch *watch)
{
    char words[512], job[SESSION_JOB_MAX + 16];
    session_describe(watch->session, watch->who, words, sizeof words);
    scheduler_describe(watch->who->job, job, sizeof job);
    error_report("%s: %s, and %s is suspended (resume or cancel that job, or give --takeover if it has ended)", watch->root,
                 words, job);
    return -1;
}

/* What is being settled. */
struct takeover_case {
    const char *root;
    bool anyhow, for_tool;
    bool told; /* what is waited for */
    uint64_t began;
};

/* Is it held by a tool whose end is waited for? */
static bool takeover_awaits(const struct takeover_case *takeover, const struct session *session)
{
    return session_is_held(session) && (!takeover->for_tool || strcmp(session->members[0].node, TAKEOVER_NODE) == 0);
}

/* Is there something to be taken over, or waited for? */
static bool takeover_concerns(const struct takeover_case *takeover, const struct session *session)
{
    const struct session_member *living = session_living(session);
    return living != NULL && session->uid == geteuid() &&
           (takeover_awaits(takeover, session) || session_lives(living) == -EREMOTE);
}

static void takeover_tell_tool(struct takeover_case *takeover, const struct session *session)
{
    char words[512];
    if (takeover->told || clock_monotonic() - takeover->began < TELLS)
        return;
    takeover->told = true;
    session_describe(session, NULL, words, sizeof words);
    error_report("%s: %s, whose end is waited for", takeover->root, words);
}

/* As takeover_watch, but -EBUSY while a tool is waited for. */
static int takeover_try(struct takeover_case *takeover, const struct session *session)
{
    const char *root = takeover->root;
    struct config config;
    config_read(&config, environ);
    struct takeover_watch watch = {.root = root, .session = session, .anyhow = takeover->anyhow, .told = takeover->told};
    watch.patience = config.stale > session->lease ? config.stale : session->lease;
    int code = takeover_watch(&watch);
    if (code == TAKEOVER_FREE)
        code = takeover_take(&watch);
    else if (code == TAKEOVER_SUSPENDED)
        code = takeover_refuse_suspended(&watch);
    else if (code == TAKEOVER_CHANGED || (code == TAKEOVER_LIVES && takeover_awaits(takeover, session)))
        code = -EBUSY;
    else if (code == TAKEOVER_LIVES)
        code = 0;
    else if (code != -EINTR)
        error_report("%s: its session cannot be watched: %s (check the file system)", root, strerror(-code));
    takeover->told = watch.told;
    if (code == -EBUSY)
        takeover_tell_tool(takeover, session);
    free(watch.pulses);
    free(watch.words);
    return code;
}

static int takeover_settle_all(struct takeover_case *takeover)
{
    const struct timespec pause = clock_split(LOOKS);
    takeover->began = clock_monotonic();
    for (;;) {
        struct session session;
        int code = session_read(takeover->root, &session);
        if (code == 0 && takeover_concerns(takeover, &session))
            code = takeover_try(takeover, &session);
        else
            code = 0; /* its users see what is wrong with it */
        session_finish(&session);
        if (code != -EBUSY)
            return code == 0 ? 0 : -1;
        if (stopping())
            return -1;
        clock_sleep(&pause);
    }
}

int takeover_settle(const char *root, bool anyhow)
{
    struct takeover_case takeover = {.root = root, .anyhow = anyhow};
    return takeover_settle_all(&takeover);
}

int takeover_settle_for_tool(const char *root)
{
    struct takeover_case takeover = {.root = root, .for_tool = true};
    return takeover_settle_all(&takeover);
}
