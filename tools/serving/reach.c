/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serving/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "base/text.h"
#include "cli/command.h"
#include "config/config.h"
#include "programs/launch.h"
#include "request/request.h"
#include "session/run_dirs.h"
#include "union/disk.h"
#include "union/layout.h"

/* The nodes by which one root is served here. */
struct reach {
    const char *root;
    char names[512]; /* for people; what does not fit is left out */
    char one[LAYOUT_NODE_MAX + 1];
    size_t count;
    bool has_wanted;
};

/* One that is being started again is there; why one cannot be used is said by the library. */
static bool reach_is_there(const char *run_dir)
{
    struct request_channel *channel;
    int code = request_attach(&channel, run_dir);
    if (code == 0)
        request_abandon(channel);
    return code != -ENOENT && code != -EHOSTDOWN;
}

static void reach_add(struct reach *reach, const char *node, const char *wanted)
{
    size_t length = strlen(reach->names);
    snprintf(reach->names + length, sizeof reach->names - length, "%s%s", length > 0 ? ", " : "", node);
    snprintf(reach->one, sizeof reach->one, "%s", node);
    reach->has_wanted |= strcmp(node, wanted) == 0;
    reach->count++;
}

/* The nodes of one root, whose run directories begin with the same text. */
struct reach_walk {
    struct reach *reach;
    const char *wanted;
    size_t node; /* where a node's name begins */
};

static int reach_look_at(void *context, const char *run_dir)
{
    const struct reach_walk *walk = context;
    if (reach_is_there(run_dir))
        reach_add(walk->reach, run_dir + walk->node, walk->wanted);
    return 0;
}

static int reach_look(struct reach *reach, const char *root, const char *wanted)
{
    struct statx stat;
    struct config config;
    char beginning[SESSION_RUN_MAX];
    struct text t;
    *reach = (struct reach){.root = root};
    config_read(&config, environ);
    int code = sys_statx(AT_FDCWD, root, 0, STATX_TYPE | STATX_INO, &stat);
    if (code == 0 && !S_ISDIR(stat.stx_mode))
        code = -ENOTDIR;
    if (code != 0) {
        error_report_path(root, code);
        return -1;
    }
    text_init(&t, beginning, sizeof beginning);
    session_run_dir(&t, config.run_base, geteuid(), disk_device(&stat), stat.stx_ino, "");
    struct reach_walk walk = {reach, wanted, t.length};
    if (text_ok(&t))
        run_dirs_each(beginning, reach_look_at, &walk);
    return 0;
}

/* `chosen`: by somebody, or since another root is served by it. */
static int reach_choose(const struct reach *reach, struct daemon_options *options, bool chosen)
{
    if (reach->has_wanted || reach->count == 0)
        return 0;
    if (chosen)
        error_report("%s: no daemon of this host is named '%s' (its daemon%s: %s)", reach->root, options->node,
                     reach->count == 1 ? " is" : "s are", reach->names);
    else if (reach->count > 1)
        error_report("%s: several daemons of this host serve it (give --node one of %s)", reach->root, reach->names);
    if (reach->count != 1 || chosen)
        return LAUNCH_NO_SHIM;
    strcpy(options->node, reach->one);
    return 0;
}

int reach_node(const struct roots *roots, struct daemon_options *options, const char *given)
{
    struct reach reach;
    const char *node = getenv("SHUNT_NODE");
    bool chosen = (given != NULL && *given != '\0') || (node != NULL && *node != '\0');
    if (daemon_node(options, given) < 0)
        return STATUS_USAGE;
    for (size_t i = 0; i < roots->count; i++) {
        int status =
            reach_look(&reach, roots->paths[i], options->node) < 0 ? LAUNCH_NO_SHIM : reach_choose(&reach, options, chosen);
        if (status != 0)
            return status;
        chosen = true;
    }
    return 0;
}

/* Is there one for each root, or is it for somebody else to say why not? */
static bool reach_has_all(const struct roots *roots)
{
    struct reach reach;
    for (size_t i = 0; i < roots->count; i++)
        if (reach_look(&reach, roots->paths[i], "") == 0 && reach.count == 0)
            return false;
    return true;
}

int reach_node_within(const struct roots *roots, struct daemon_options *options, const char *given, uint64_t seconds)
{
    const uint64_t end = clock_monotonic() + seconds * CLOCK_SECOND;
    const struct timespec pause = clock_split(100 * CLOCK_MILLISECOND);
    while (seconds > 0 && !reach_has_all(roots) && clock_monotonic() < end)
        clock_sleep(&pause);
    return reach_node(roots, options, given);
}

/* There is no daemon for it here: is there a session, and whose? */
static void reach_complain(const char *root)
{
    char words[512];
    struct session session;
    const struct session_member *member = session_read(root, &session) == 0 ? session_living(&session) : NULL;
    if (member != NULL)
        session_describe(&session, member, words, sizeof words);
    if (member != NULL && session_is_held(&session))
        error_report("%s: %s (wait for its end, then run 'shunt start --root %s')", root, words, root);
    else if (member != NULL && session.uid != geteuid())
        error_report("%s: %s (ask that user to run 'shunt stop --root %s', or read with 'shunt ls %s')", root, words, root,
                     root);
    else if (member != NULL && session_lives(member) == -EREMOTE)
        error_report("%s: no daemon is running for this root on this host, %s (run 'shunt start --root %s' here, too)", root,
                     words, root);
    else
        error_report("%s: no daemon is running for this root (run 'shunt start --root %s')", root, root);
    session_finish(&session);
}

bool reach_prove(void)
{
    struct roots roots;
    struct reach reach;
    const char *node = getenv("SHUNT_NODE");
    roots_init(&roots);
    bool reaches = roots_default(&roots) == 0;
    for (size_t i = 0; reaches && i < roots.count; i++) {
        reaches = reach_look(&reach, roots.paths[i], node != NULL ? node : "") == 0 && reach.has_wanted;
        if (!reaches)
            reach_complain(reach.root);
    }
    roots_finish(&roots);
    return reaches;
}
