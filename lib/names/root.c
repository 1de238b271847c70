/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What a root is for a process: its paths, and where its daemons' files are. */

#include <errno.h>
#include <linux/openat2.h>
#include <string.h>

#include "base/sys.h"
#include "base/text.h"
#include "base/valgrind.h"
#include "names/origin.h"
#include "names/state.h"
#include "names/visible.h"
#include "session/session.h"
#include "union/identity.h"

/* A plain text on whose way there is no symbolic link is canonical already: to be told so by openat2 takes a
 * tenth of the time that /proc takes to say the same. */
static int root_open_canonical(const char *text)
{
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    size_t length = strlen(text);
    return text[0] == '/' && text_find(text, "//") == NULL && text_find(text, "/.") == NULL && text[length - 1] != '/' &&
                   !valgrind_is_there() /* which does not know openat2, and says so */
               ? (int)SYS4(SYS_openat2, AT_FDCWD, text, &how, sizeof how)
               : -ELOOP;
}

/* Sets path, which is as it was given or goes to `to`, of PATH_MAX bytes. */
static int root_resolve(struct names_root *root, char *to)
{
    struct statx stat;
    int fd = root_open_canonical(root->given);
    root->path = fd >= 0 ? root->given : to;
    if (fd < 0) /* or a kernel that has no openat2, or a filter that does not know it */
        fd = sys_openat(AT_FDCWD, root->given, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    int code = identity_stat_root(fd, &stat);
    if (code == 0 && root->path == to)
        code = names_read_place(fd, to);
    sys_close(fd);
    if (code != 0)
        return code;
    root->id = dirid_of(&stat);
    root->device = names_device(&stat);
    return 0;
}

/* Its text does not lead to it here. */
static void root_resolve_elsewhere(struct names_root *root, const struct origin *origin, char *to)
{
    root->device = origin->device;
    root->id = origin->id;
    root->sight = visible_find(root, to);
    root->path = root->sight == NAMES_SEEN ? to : root->given;
    root->given = "";
}

static bool root_is_other(const struct names_root *root, const struct origin *origin)
{
    return root->device != origin->device || !dirid_equal(root->id, origin->id);
}

/* Neither is it there nor is it not: the file system failed, or there is no descriptor or memory. Where a filter refuses the
 * look, each call on it is refused (prefilter.h of the shim). */
static bool root_cannot_be_told(int code)
{
    return code < 0 && !sys_is_about_path(code) && !sys_may_be_refused(code);
}

/* What is beneath it by the text fails. */
static void root_resolve_not(struct names_root *root)
{
    root->device = 0;
    root->id = (struct dirid){0, 0};
    root->sight = NAMES_UNTOLD;
    root->path = root->given;
    root->given = "";
}

static int root_resolve_all(struct names_root *root, const struct origin *origin, char *to)
{
    int code = root_resolve(root, to);
    if (origin != NULL && (code != 0 || root_is_other(root, origin)) && origin_is_elsewhere(origin)) {
        root_resolve_elsewhere(root, origin, to);
        return 0;
    }
    if (root->given[0] == '/' && root_cannot_be_told(code)) {
        root_resolve_not(root);
        return 0;
    }
    if (code == 0 && (root->given[0] != '/' || strcmp(root->given, root->path) == 0))
        root->given = "";
    return code;
}

/* The next of the texts, after what was written there last. */
static char *root_next_text(char *last)
{
    return last + strlen(last) + 1;
}

/* Where the next text goes; NULL: there is no room. */
static char *root_write_run_dir(const struct names_root *root, char *to, uint64_t user, const char *base, const char *node)
{
    const size_t room = (size_t)(root->texts + sizeof root->texts - 1 - to);
    struct text t;
    text_init(&t, to, room < PATH_MAX ? room : PATH_MAX);
    session_run_dir(&t, base, (uid_t)user, root->device, root->id.ino, node);
    return text_ok(&t) ? root_next_text(to) : NULL;
}

/* For each name of this node; a user namespace may call the user whose session it is otherwise. */
static int root_write_run_dirs(struct names_root *root, char *to, uint64_t user, const struct names_settings *settings)
{
    const uint64_t users[] = {user, settings->origin != NULL ? settings->origin->user : user};
    const size_t count = users[0] != users[1] ? 2 : 1;
    root->run_dir = root->run_dirs = to;
    for (size_t i = 0; settings->nodes[i / count] != NULL; i++) {
        char *next = root_write_run_dir(root, to, users[i % count], settings->run_base, settings->nodes[i / count]);
        if (next == NULL)
            break;
        to = next;
    }
    *to = '\0';
    return *root->run_dirs != '\0' ? 0 : -ENAMETOOLONG;
}

static void root_begin(struct names_root *root, const struct names_settings *settings)
{
    /* Not the whole structure: to write pages of texts would cost a process's start. */
    root->deadline = settings->deadline;
    root->attaching = root->told = root->served = root->sight = 0;
    root->view = NULL;
    root->channel = root->inherited_channel = NULL;
    root->namespace = settings->origin != NULL ? settings->origin->namespace : 0;
    root->boot = settings->origin != NULL ? settings->origin->boot : 0;
}

int names_root_init(struct names_root *root, const char *text, size_t length, const struct names_settings *settings)
{
    struct text given, within;
    const struct origin *origin = settings->origin;
    const uint64_t user = (uid_t)SYS0(SYS_geteuid);
    root_begin(root, settings);
    text_init(&given, root->texts, PATH_MAX);
    text_bytes(&given, text, length);
    text_init(&within, given.at + given.length + 1, PATH_MAX);
    text_bytes(&within, origin != NULL ? origin->within : "", origin != NULL ? origin->within_length : 0);
    root->given = given.at;
    root->within = within.at;
    char *rest = root_next_text(within.at);
    *rest = '\0';
    int code = text_ok(&given) && text_ok(&within) ? root_resolve_all(root, origin, rest) : -ENAMETOOLONG;
    if (code != 0)
        return code;
    rest = root->path == rest ? root_next_text(rest) : rest;
    return root_write_run_dirs(root, rest, user, settings);
}
