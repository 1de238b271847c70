/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "hold.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "base/sys.h"
#include "command.h"

#define SESSION_DIRECTORY LAYOUT_OWN "/session"

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
    if (session->uid != geteuid()) {
        hold_complain_user(root, session, member);
        return;
    }
    session_describe(session, member, words, sizeof words);
    if (member && session_lives(member) == -EREMOTE)
        error_report(
            "%s: %s (run 'shunt stop --root %s' on that host; if the host is gone for good, remove %s/" SESSION_DIRECTORY
            "/epoch.*)",
            root, words, root, root);
    else
        error_report("%s: %s (run 'shunt stop --root %s' first, or wait for its end)", root, words, root);
}

static void hold_complain_broken(const char *root)
{
    error_report("%s: its session is of another version of shunt (run 'shunt stop --root %s' of that version)", root, root);
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

static int hold_found(struct hold *hold, const char *what, struct session *session)
{
    struct session_member mine;
    const struct passwd *user = getpwuid(geteuid());
    session_self(&mine, what);
    snprintf(mine.run_dir, sizeof mine.run_dir, "/");
    snprintf(mine.branch, sizeof mine.branch, "%s.1", what);
    int error = session_found(hold->root, user ? user->pw_name : "", &mine, 0, SESSION_STALE, session);
    hold->id = session->id;
    hold->number = mine.number;
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

int hold_take(struct hold *hold, const char *root, const char *what)
{
    struct session session;
    hold->root = root;
    int error = hold_found(hold, what, &session);
    if (error == -ENOENT) {
        hold_make_session_directory(root);
        error = hold_found(hold, what, &session);
    }
    if (error == -EBUSY)
        hold_complain_session(root, &session);
    else if (error == -EBADMSG)
        hold_complain_broken(root);
    else if (error < 0)
        error_report_path(root, error);
    if (error < 0)
        hold->number = 0;
    session_finish(&session);
    return error < 0 ? -1 : 0;
}

void hold_release(const struct hold *hold)
{
    session_leave(hold->root, hold->id, hold->number);
}
