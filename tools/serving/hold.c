/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serving/hold.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "batch/scheduler.h"
#include "cli/command.h"
#include "cli/stopping.h"
#include "serving/takeover.h"
#include "tree/fixed.h"

#define SESSION_DIRECTORY LAYOUT_OWN "/session"

/* A tool is none of the daemons that `shunt stop` ends. */
static void hold_complain_tool(const char *root, const struct session *session)
{
    char words[512];
    session_describe(session, NULL, words, sizeof words);
    error_report("%s: %s (%swait for its end)", root, words, session->uid == geteuid() ? "interrupt it, or " : "");
}

static void hold_complain_user(const char *root, const struct session *session, const struct session_member *member)
{
    char words[512];
    session_describe(session, member, words, sizeof words);
    error_report("%s: %s (ask that user to run 'shunt stop --root %s', or wait for its end)", root, words, root);
}

static void hold_complain_session(const char *root, const struct session *session)
{
    char words[512];
    const struct session_member *member = session_living(session);
    if (session_is_held(session)) {
        hold_complain_tool(root, session);
        return;
    }
    if (session->uid != geteuid()) {
        hold_complain_user(root, session, member);
        return;
    }
    session_describe(session, member, words, sizeof words);
    if (member && session_lives(member) == -EREMOTE)
        error_report("%s: %s (run 'shunt stop --root %s' on that host, or wait for its end)", root, words, root);
    else
        error_report("%s: %s (run 'shunt stop --root %s' first, or wait for its end)", root, words, root);
}

static void hold_complain_broken(const char *root)
{
    error_report(
        "%s: its session is of another version of shunt (run 'shunt stop --root %s' of that version, or 'shunt export %s' of "
        "it if its job was killed)",
        root, root, root);
}

bool hold_is_taken(const char *root)
{
    struct session session;
    int error = session_read(root, &session);
    bool taken = error != -ENOENT && error != -ENOTDIR && (error < 0 || session_living(&session));
    if (taken && error == -EBADMSG)
        hold_complain_broken(root);
    else if (taken && error < 0)
        error_report_path(root, error);
    else if (taken)
        hold_complain_session(root, &session);
    session_finish(&session);
    return taken;
}

/* Its heartbeats, on a thread of its own; the session that is held ends with the process, or when another one supersedes it
 * because this host stood still for longer than a lease. It waits by the kernel's clock, which nobody can set; libc waits by
 * one that may be set, or that a preloaded library may have replaced (base/clock.h). */
static struct {
    pthread_t thread;
    bool runs;
    uint32_t ends; /* a futex */
    const char *root;
    struct session session; /* which it is, no members */
    uint16_t number;
} beats;

static void hold_beat(void)
{
    uint64_t epoch, began = clock_boot();
    if (session_beat(beats.root, &beats.session, beats.number) == 0 && session_epoch(beats.root, &epoch) == 0 &&
        epoch == beats.session.epoch)
        stopping_set_lease(began + beats.session.lease);
}

static void *hold_go_on_beating(void *context)
{
    const struct timespec pause = clock_split(SESSION_BEAT);
    while (__atomic_load_n(&beats.ends, __ATOMIC_ACQUIRE) == 0) {
        hold_beat();
        sys_futex_wait(&beats.ends, 0, &pause);
    }
    return context;
}

/* It has beaten once when the session was founded. A process that cannot start a thread has no longer than a lease. */
static void hold_begin_beating(const struct hold *hold, const struct session *session, uint64_t began)
{
    sigset_t all, before;
    beats.root = hold->root;
    beats.session =
        (struct session){.id = session->id, .epoch = session->epoch, .founded = session->founded, .lease = session->lease};
    beats.number = hold->number;
    beats.ends = 0;
    stopping_set_lease(began + session->lease);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    beats.runs = pthread_create(&beats.thread, NULL, hold_go_on_beating, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void hold_rest(void)
{
    __atomic_store_n(&beats.ends, 1, __ATOMIC_RELEASE);
    sys_futex_wake(&beats.ends, 1);
    if (beats.runs)
        pthread_join(beats.thread, NULL);
    beats.runs = false;
}

/* Why the claim cannot be written. */
static void hold_complain(const char *root, int error)
{
    char session[PATH_MAX], fixed[PATH_MAX];
    const int length = snprintf(session, sizeof session, "%s/" SESSION_DIRECTORY, root);
    if (error == -EPERM && length < PATH_MAX && fixed_find(root, session, fixed))
        fixed_complain(fixed);
    else
        error_report_path(root, error);
}

static int hold_found(struct hold *hold, const char *what, uint64_t silent, struct session *session)
{
    struct session_member mine;
    const struct passwd *user = getpwuid(geteuid());
    const uint64_t began = clock_boot();
    session_self(&mine, what);
    snprintf(mine.run_dir, sizeof mine.run_dir, SESSION_HELD);
    snprintf(mine.branch, sizeof mine.branch, "%s.1", what);
    snprintf(mine.job, sizeof mine.job, "%s", scheduler_own());
    int error = session_found(hold->root, user ? user->pw_name : "", &mine, silent, SESSION_STALE, session);
    hold->id = session->id;
    hold->number = mine.number;
    if (error == 0)
        hold_begin_beating(hold, session, began);
    return error;
}

/* A root that was never served has no place for the claim yet. */
static void hold_make_session_directory(const char *root)
{
    int fd = sys_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    sys_mkdirat(fd, SESSION_DIRECTORY, 0755);
    sys_close(fd);
}

int hold_supersede(struct hold *hold, const char *root, const char *what, uint64_t epoch)
{
    struct session session;
    hold->root = root;
    int error = hold_found(hold, what, epoch, &session);
    session_finish(&session);
    if (error == 0 || error == -EBUSY)
        return error;
    hold_complain(root, error);
    return -1;
}

static int hold_try(struct hold *hold, const char *root, const char *what, bool may_yield)
{
    struct session session;
    hold->root = root;
    if (takeover_settle_for_tool(root) < 0)
        return -1;
    int error = hold_found(hold, what, 0, &session);
    if (error == -ENOENT) {
        hold_make_session_directory(root);
        error = hold_found(hold, what, 0, &session);
    }
    const bool yields = may_yield && ((error == -EBUSY && session.uid == geteuid()) || error == -ENOENT);
    if (error == -EBUSY && !yields)
        hold_complain_session(root, &session);
    else if (error == -EBADMSG)
        hold_complain_broken(root);
    else if (error < 0 && !yields)
        hold_complain(root, error);
    if (error < 0)
        hold->number = 0;
    session_finish(&session);
    return yields ? 1 : error < 0 ? -1 : 0;
}

int hold_take(struct hold *hold, const char *root, const char *what)
{
    return hold_try(hold, root, what, false);
}

int hold_take_or_yield(struct hold *hold, const char *root, const char *what)
{
    return hold_try(hold, root, what, true);
}

int hold_look_at_root(struct union_root *root)
{
    struct union_root now;
    int error = union_root_init(&now, root->path, 0);
    if (error < 0) {
        error_report_path(root->path, error);
        return -1;
    }
    union_root_finish(root);
    *root = now;
    return 0;
}

void hold_release(const struct hold *hold)
{
    hold_rest();
    stopping_set_lease(UINT64_MAX);
    session_leave(hold->root, hold->id, hold->number);
}
