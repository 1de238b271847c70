/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "daemon.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "launch.h"
#include "orphans.h"
#include "places.h"
#include "progress.h"
#include "session/session.h"
#include "verb.h"

#define STOP_PATIENCE 60 /* seconds */

static void host_node(char node[LAYOUT_NODE_MAX + 1])
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    snprintf(node, LAYOUT_NODE_MAX + 1, "%.*s", LAYOUT_NODE_MAX, *host ? host : "node");
    for (char *at = node; *at; at++)
        if (!layout_node_is_valid(at, 1) && *at != '-' && *at != '_')
            *at = '-';
    if (!layout_node_is_valid(node, 1))
        node[0] = 'n';
}

int daemon_node(struct daemon_options *options, const char *given)
{
    if (!given || !*given)
        given = getenv("SHUNT_NODE");
    if (!given || !*given) {
        host_node(options->node);
        return 0;
    }
    if (!layout_node_is_valid(given, strlen(given))) {
        complain("'%s' is no name for a node: use at most %d letters, digits, '-', '_' and '.', a letter or "
                 "digit first",
                 given, LAYOUT_NODE_MAX);
        return -1;
    }
    strcpy(options->node, given);
    return 0;
}

/* The daemon must not run under the shim, not even when this tool does: hence no wrapped exec either. */
static void become(const char *program, char *const *words)
{
    launch_without_shim();
    SYS3(SYS_execve, program, words, environ);
    complain("%s cannot be run: build or install shunt as a whole", program);
    _exit(STATUS_FAILED);
}

static int spawn(const char *program, char *const *words)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        become(program, words);
    if (child < 0) {
        complain("no process can be made (%s): end some and run this again", strerror(errno));
        return -1;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        complain("shuntd was killed by signal %d while it started: see its log", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int start_one(const char *program, const char *root, const struct daemon_options *options)
{
    char *words[12];
    size_t count = 0;
    words[count++] = (char *)program;
    words[count++] = "--root";
    words[count++] = (char *)root;
    words[count++] = "--node";
    words[count++] = (char *)options->node;
    if (options->placement) {
        words[count++] = "--placement";
        words[count++] = (char *)options->placement;
    }
    if (options->leaf_full) {
        words[count++] = "--leaf-full";
        words[count++] = (char *)options->leaf_full;
    }
    if (options->alone)
        words[count++] = "--alone";
    if (options->takeover)
        words[count++] = "--takeover";
    words[count] = NULL;
    return spawn(program, words);
}

int daemon_start(const struct roots *roots, const struct daemon_options *options)
{
    char program[PATH_MAX];
    if (places_daemon(program) < 0)
        return -1;
    for (size_t i = 0; i < roots->count; i++) {
        if (!options->orphans_told)
            orphans_report(roots->paths[i]);
        if (start_one(program, roots->paths[i], options) < 0) {
            daemon_stop_all(roots, i, options->node);
            return -1;
        }
    }
    return 0;
}

/* A member to stop, and what words are needed for it. */
struct stopping {
    const char *root;
    const struct session *session;
    const struct session_member *member;
};

/* Waits for the end of the process, and says meanwhile that it does. 0 or -1. */
static int wait_for_end(int pidfd, const struct stopping *stopping)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    struct progress progress;
    uint64_t began = clock_monotonic(), waited = 0;
    int pid = (int)stopping->member->pid;
    progress_init(&progress, false);
    while (waited < STOP_PATIENCE && poll(&end, 1, 200) <= 0) {
        waited = (clock_monotonic() - began) / CLOCK_SECOND;
        if (progress_due(&progress))
            progress_line(&progress, "waiting for shuntd (process %d) to write down its work: %llu s", pid,
                          (unsigned long long)waited);
    }
    progress_finish(&progress);
    if (waited < STOP_PATIENCE)
        return 0;
    complain("shuntd of %s (process %d) has not ended after %d s: see %s, and if it hangs, `kill -KILL %d`",
             stopping->root, pid, STOP_PATIENCE, stopping->member->run_dir, pid);
    return -1;
}

static int end_process(int pidfd, const struct stopping *stopping)
{
    const char *root = stopping->root;
    /* Now that the descriptor holds the process, its number cannot become another's: is it still the one? */
    if (session_lives(stopping->member) != 1)
        return 0;
    int error = (int)SYS4(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0);
    if (error == -EPERM) {
        complain("the session of %s belongs to %s: ask for `shunt stop --root %s`", root,
                 stopping->session->user, root);
        return -1;
    }
    return error == -ESRCH ? 0 : wait_for_end(pidfd, stopping);
}

static int stop_process(const struct stopping *stopping)
{
    pid_t pid = stopping->member->pid;
    int pidfd = (int)SYS2(SYS_pidfd_open, pid, 0);
    if (pidfd == -ESRCH)
        return 0;
    if (pidfd < 0) {
        complain("process %d cannot be waited for (%s): stop it with `kill %d`", (int)pid, strerror(-pidfd),
                 (int)pid);
        return -1;
    }
    int answer = end_process(pidfd, stopping);
    close(pidfd);
    return answer;
}

/* Those of this host, who came last first, since the first is the home of all names: who lives is ended; what
 * the dead left is taken away, as the next start would. How many were found here, or -1. */
static int stop_members(const char *root, const char *node, const struct session *session)
{
    int here = 0;
    bool failed = false;
    for (size_t i = session->count; i-- > 0;) {
        struct stopping stopping = {root, session, &session->members[i]};
        if (node != NULL && strcmp(stopping.member->node, node) != 0)
            continue;
        int lives = session_lives(stopping.member);
        here += lives >= 0;
        if (lives == 1)
            failed |= stop_process(&stopping) < 0;
        else if (lives == 0)
            session_leave(root, session->id, stopping.member->number);
    }
    return failed ? -1 : here;
}

static int stop_session(const char *root, const char *node, const struct session *session)
{
    char words[512];
    int here = stop_members(root, node, session);
    if (here != 0 || (node != NULL && session_find_node(session, node) == NULL))
        return here < 0 ? -1 : 0;
    session_describe(session, NULL, words, sizeof words);
    complain("%s: %s: run `shunt stop --root %s` there", root, words, root);
    return -1;
}

int daemon_stop(const char *root, const char *node)
{
    struct session session;
    int error = session_read(root, &session);
    if (error == -ENOENT || error == -ENOTDIR)
        return 0;
    if (error < 0) {
        complain(
            "the last %s/.shunt/session/epoch.* cannot be read (%s): look at it, and stop the shuntd that it "
            "names",
            root, strerror(-error));
        return -1;
    }
    int answer = stop_session(root, node, &session);
    session_finish(&session);
    return answer;
}

int daemon_stop_all(const struct roots *roots, size_t count, const char *node)
{
    int answer = 0;
    for (size_t i = 0; i < count; i++)
        if (daemon_stop(roots->paths[i], node) < 0)
            answer = -1;
    return answer;
}
