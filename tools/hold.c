/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "hold.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "union/disk.h"
#include "verb.h"

#define SESSION_DIRECTORY LAYOUT_OWN "/session"

static void complain_holder(const char *root, const struct session *holder)
{
    char words[512];
    session_describe(holder, words, sizeof words);
    if (session_lives(holder) == -EREMOTE)
        complain("%s: %s: run `shunt stop --root %s` there, or remove %s/" SESSION_DIRECTORY
                 "/holder if that host is gone for good",
                 root, words, root, root);
    else
        complain("%s: %s: run `shunt stop --root %s` first, or wait for its end", root, words, root);
}

static void complain_broken(const char *root)
{
    complain("%s/" SESSION_DIRECTORY
             "/holder is not of this version of shunt: stop what uses the root, then remove it",
             root);
}

bool hold_is_taken(const char *root)
{
    struct session holder;
    int error = session_read(root, &holder);
    if (error == -ENOENT || error == -ENOTDIR)
        return false;
    if (error == -EBADMSG)
        complain_broken(root);
    else if (error < 0)
        complain_of(root, error);
    else if (session_lives(&holder) == 0)
        return false;
    else
        complain_holder(root, &holder);
    return true;
}

static void fill(struct session *mine, const char *what)
{
    struct text t;
    *mine = (struct session){.id = disk_random() | 1,
                             .pid = getpid(),
                             .started = session_process_started(getpid()),
                             .uid = geteuid(),
                             .since = clock_of(CLOCK_REALTIME),
                             .run_dir = "/"};
    gethostname(mine->host, sizeof mine->host - 1);
    ssize_t length = disk_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", mine->boot, sizeof mine->boot);
    mine->boot[length > 0 ? length - 1 : 0] = '\0';
    const struct passwd *user = getpwuid(mine->uid);
    snprintf(mine->user, sizeof mine->user, "%s", user ? user->pw_name : "");
    snprintf(mine->node, sizeof mine->node, "%s", what);
    text_init(&t, mine->branch, sizeof mine->branch);
    text_add(&t, what);
    text_add(&t, ".1");
}

/* A root that was never served has no place for the claim yet. */
static void make_session_directory(const char *root)
{
    int fd = sys_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    sys_mkdirat(fd, SESSION_DIRECTORY, 0755);
    sys_close(fd);
}

int hold_take(struct hold *hold, const char *root, const char *what)
{
    struct session holder;
    hold->root = root;
    fill(&hold->mine, what);
    int error = session_claim(root, &hold->mine, &holder);
    if (error == -ENOENT) {
        make_session_directory(root);
        error = session_claim(root, &hold->mine, &holder);
    }
    if (error == -EBUSY)
        complain_holder(root, &holder);
    else if (error == -EBADMSG)
        complain_broken(root);
    else if (error < 0)
        complain_of(root, error);
    return error < 0 ? -1 : 0;
}

void hold_release(const struct hold *hold)
{
    session_release(hold->root, &hold->mine);
}
