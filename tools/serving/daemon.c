/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "serving/daemon.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "batch/scheduler.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/stopping.h"
#include "config/config.h"
#include "programs/launch.h"
#include "programs/places.h"
#include "programs/site.h"
#include "request/request.h"
#include "serving/leftover.h"
#include "serving/takeover.h"
#include "session/kept_log.h"
#include "session/session.h"
#include "tree/orphans.h"

#define STOP_PATIENCE 60 /* seconds */
#define DAEMON_AGAIN 75  /* the status of a shuntd that is to be started again (shuntd.8, --again) */
#define AGAIN_PATIENCE (40 * CLOCK_SECOND)

/* Slurm may have several nodes on one host. */
static void daemon_host_node(char node[LAYOUT_NODE_MAX + 1])
{
    const char *slurm = getenv("SLURMD_NODENAME");
    char host[256] = "";
    if (slurm && *slurm)
        snprintf(host, sizeof host, "%s", slurm);
    else
        gethostname(host, sizeof host - 1);
    layout_node_of_host(host, node);
}

int daemon_node(struct daemon_options *options, const char *given)
{
    if (!given || !*given)
        given = getenv("SHUNT_NODE");
    if (!given || !*given) {
        daemon_host_node(options->node);
        return 0;
    }
    if (!layout_node_is_valid(given, strlen(given))) {
        error_report("node name '%s': invalid (use at most %d letters, digits, '-', '_' and '.', a letter or digit first)",
                     given, LAYOUT_NODE_MAX);
        return -1;
    }
    strcpy(options->node, given);
    return 0;
}

int daemon_take_placement(const struct command *command, const char *text, const char **placement)
{
    enum config_placement parsed;
    *placement = text;
    if (config_placement_parse(text, &parsed) == 0)
        return 0;
    error_usage(command, "--placement '%s': neither auto nor branch", text);
    return -1;
}

int daemon_take_leaf_full(const struct command *command, const char *text, const char **leaf_full)
{
    uint64_t parsed;
    *leaf_full = text;
    if (config_number_parse(text, UINT32_MAX, &parsed) == 0)
        return 0;
    error_usage(command, "--leaf-full '%s': not a number from 1 to %u", text, UINT32_MAX);
    return -1;
}

/* The daemon must not run under the shim, not even when this tool does: hence no wrapped exec either. */
static void daemon_become(const char *program, char *const *words)
{
    launch_without_shim();
    SYS3(SYS_execve, program, words, environ);
    error_report("%s: cannot be executed (build or install shunt as a whole)", program);
    _exit(STATUS_FAILED);
}

static int daemon_spawn(const char *program, char *const *words)
{
    int status = 0;
    pid_t child = stopping_fork();
    if (child == 0)
        daemon_become(program, words);
    if (child < 0) {
        error_report("cannot start a process: %s (end other processes and run this again)", strerror(errno));
        return -1;
    }
    if (stopping_wait(child, &status) < 0)
        return -1;
    if (WIFSIGNALED(status) && !stopping())
        error_report("shuntd: killed by signal %d while it started (see its log in SHUNT_RUN_DIR)", WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) == DAEMON_AGAIN)
        return -EAGAIN;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* With `again` -EAGAIN: what is in its way may pass. */
static int daemon_start_one(const char *program, const char *root, const struct daemon_options *options, bool again)
{
    char *words[13];
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
    if (again)
        words[count++] = "--again";
    words[count] = NULL;
    return daemon_spawn(program, words);
}

/* A tool may hold the root by now, or the job of a session have ended that was going on a moment ago. */
static int daemon_start_settled(const char *program, const char *root, const struct daemon_options *options)
{
    uint64_t began = clock_monotonic(), spent = 0;
    int code;
    while ((code = daemon_start_one(program, root, options, spent < AGAIN_PATIENCE)) == -EAGAIN) {
        spent += clock_monotonic() - began;
        if (takeover_settle(root, options->takeover) < 0)
            return -1;
        began = clock_monotonic();
    }
    return code;
}

int daemon_start_root(const char *root, const struct daemon_options *options)
{
    char program[PATH_MAX];
    if (places_daemon(program) < 0)
        return -1;
    scheduler_own(); /* into the environment of the daemon */
    if (!options->settled && takeover_settle(root, options->takeover) < 0)
        return -1;
    if (!options->orphans_told)
        orphans_report(root);
    return daemon_start_settled(program, root, options);
}

int daemon_start(const struct roots *roots, const struct daemon_options *options)
{
    size_t started = 0;
    for (int code = 0; started < roots->count && code == 0 && !stopping();) {
        code = daemon_start_root(roots->paths[started], options);
        started += code == 0;
    }
    if (started == roots->count && !stopping())
        return 0;
    daemon_stop_all(roots, started, options->node);
    return -1;
}

/* A member to stop, and what words are needed for it. */
struct stopping {
    const char *root;
    const struct session *session;
    const struct session_member *member;
};

/* Did it keep its log? One that ended before that does not come into question. */
static void daemon_tell_log(const struct stopping *stopping)
{
    char directory[PATH_MAX], path[PATH_MAX];
    const struct session_member *member = stopping->member;
    const uint64_t since = clock_of(CLOCK_REALTIME) - 2 * STOP_PATIENCE * CLOCK_SECOND;
    if (settings_log_dir(site_settings(), environ, directory) &&
        kept_log_find(directory, member->node, member->pid, since, path))
        error_report("%s: something went wrong while it was served (read %s)", stopping->root, path);
}

/* Waits for the end of the process, and says meanwhile that it does. 0 or -1. */
static int daemon_wait_for_end(int pidfd, const struct stopping *stopping)
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
    if (waited < STOP_PATIENCE) {
        daemon_tell_log(stopping);
        return 0;
    }
    error_report("%s: shuntd (process %d) has not ended after %d s (see the log in %s; if shuntd hangs, run 'kill -KILL %d')",
                 stopping->root, pid, STOP_PATIENCE, stopping->member->run_dir, pid);
    return -1;
}

static int daemon_end_process(int pidfd, const struct stopping *stopping)
{
    const char *root = stopping->root;
    int error = (int)SYS4(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0);
    if (error == -EPERM) {
        error_report("%s: the session belongs to user %s (ask that user to run 'shunt stop --root %s')", root,
                     stopping->session->user, root);
        return -1;
    }
    return error == -ESRCH ? 0 : daemon_wait_for_end(pidfd, stopping);
}

/* The one whose end is the end of the daemon: its supervisor, if there is one, which passes on what it is sent and starts
 * no other one; also when the daemon has just crashed. 0: nobody is left. */
static pid_t daemon_who_ends(const struct stopping *stopping)
{
    pid_t supervisor = request_supervisor(stopping->member->run_dir);
    return supervisor != 0 ? supervisor : session_lives(stopping->member) == 1 ? stopping->member->pid : 0;
}

/* 0: it has ended. */
static int daemon_cannot_wait(pid_t pid, int error)
{
    if (error == -ESRCH)
        return 0;
    error_report("process %d: cannot be waited for: %s (run 'kill %d')", (int)pid, strerror(-error), (int)pid);
    return -1;
}

static int daemon_stop_process(const struct stopping *stopping)
{
    pid_t pid = daemon_who_ends(stopping);
    int pidfd = pid != 0 ? (int)SYS2(SYS_pidfd_open, pid, 0) : -ESRCH;
    if (pidfd < 0)
        return daemon_cannot_wait(pid, pidfd);
    /* Now that the descriptor holds the process, its number cannot become another's: is it still the one? */
    int answer = daemon_who_ends(stopping) == pid ? daemon_end_process(pidfd, stopping) : 0;
    close(pidfd);
    return answer;
}

/* It was to end, and crashed before it had left the session; nobody starts it again. */
static bool daemon_has_crashed(const struct session_member *member)
{
    return session_lives(member) == 0 && request_supervisor(member->run_dir) == 0;
}

/* How many are left of a session: 0 also when there is another one. What the dead left is taken away, that of one node if
 * `node` is not NULL: the others would wait for them. */
static size_t daemon_members_left(const char *root, const char *node, uint64_t id)
{
    struct session now;
    size_t count = session_read(root, &now) == 0 && now.id == id ? now.count : 0, left = count;
    for (size_t i = 0; i < count; i++)
        if ((node == NULL || strcmp(now.members[i].node, node) == 0) && daemon_has_crashed(&now.members[i]) &&
            session_leave(root, id, now.members[i].number) == 0)
            left--;
    session_finish(&now);
    return left;
}

/* Those of this host, one after the other: live ones are ended; what dead ones left is taken away, as the next start
 * would, also of those that crashed meanwhile. How many were found here, or -1. */
static int daemon_stop_members(const char *root, const char *node, const struct session *session)
{
    int here = 0;
    bool failed = false;
    for (size_t i = session->count; i-- > 0;) {
        struct stopping stopping = {root, session, &session->members[i]};
        if (node != NULL && strcmp(stopping.member->node, node) != 0)
            continue;
        int lives = session_lives(stopping.member);
        here += lives >= 0;
        if (lives >= 0)
            failed |= daemon_stop_process(&stopping) < 0;
    }
    daemon_members_left(root, node, session->id);
    return failed ? -1 : here;
}

static int daemon_stop_session(const char *root, const char *node, const struct session *session)
{
    char words[512];
    if (node != NULL && session_find_node(session, node) == NULL) {
        error_report("%s: no daemon of its session is named '%s' (run 'shunt status --root %s' to see their names)", root, node,
                     root);
        return -1;
    }
    int here = daemon_stop_members(root, node, session);
    if (here != 0)
        return here < 0 ? -1 : 0;
    session_describe(session, NULL, words, sizeof words);
    if (session->uid != geteuid())
        error_report("%s: %s (ask that user to run 'shunt stop --root %s' there)", root, words, root);
    else
        error_report("%s: %s (run 'shunt stop --root %s' on that host)", root, words, root);
    return -1;
}

/* 0; 1: there is none; -1 after a complaint. */
static int daemon_read_session(const char *root, struct session *session)
{
    int error = session_read(root, session);
    if (error == 0)
        return 0;
    if (error == -ENOENT || error == -ENOTDIR)
        return 1;
    if (error == -EBADMSG)
        error_report("%s: its session is of another version of shunt (run 'shunt stop --root %s' of that version)", root, root);
    else
        error_report("%s: its session cannot be read: %s (check that you may read %s/.shunt)", root, strerror(-error), root);
    return -1;
}

static int daemon_stop_leftover(void *root, pid_t pid, const char *run_dir)
{
    struct session_member member = {.pid = pid};
    struct session none = {0};
    struct stopping stopping = {root, &none, &member};
    snprintf(member.run_dir, sizeof member.run_dir, "%s", run_dir);
    int pidfd = (int)SYS2(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return daemon_cannot_wait(pid, pidfd);
    int answer = daemon_end_process(pidfd, &stopping);
    close(pidfd);
    return answer;
}

/* Without a session: what still serves a directory that was at that path is ended. As daemon_stop. */
static int daemon_stop_former(const char *root, const char *node)
{
    char own[PATH_MAX + sizeof LAYOUT_OWN];
    struct stat stat;
    int count = leftover_each(root, node, daemon_stop_leftover, (void *)root);
    snprintf(own, sizeof own, "%s/" LAYOUT_OWN, root);
    return count < 0 ? -1 : count == 0 && lstat(own, &stat) != 0;
}

/* Is it held by a tool that is at work? No daemon serves it then. */
static bool daemon_is_tool_at_work(const struct session *session)
{
    return session_is_held(session) && session_living(session) != NULL;
}

int daemon_stop(const char *root, const char *node)
{
    struct session session;
    int error = daemon_read_session(root, &session);
    if (error != 0)
        return error < 0 ? -1 : daemon_stop_former(root, node);
    int answer = daemon_is_tool_at_work(&session) ? daemon_stop_former(root, node) : daemon_stop_session(root, node, &session);
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

/* What daemon_stop has answered of one that is to be served, as 0 or -1. */
static int daemon_judge_stop(const char *root, int code)
{
    if (code <= 0 || site_is_off()) /* nor did `start` */
        return code < 0 ? -1 : 0;
    error_report("%s: nothing serves it, it has no .shunt (give the directory that 'shunt start' was given)", root);
    return -1;
}

int daemon_stop_served(const struct roots *roots, const char *node)
{
    int answer = 0;
    for (size_t i = 0; i < roots->count; i++)
        if (daemon_judge_stop(roots->paths[i], daemon_stop(roots->paths[i], node)) < 0)
            answer = -1;
    return answer;
}

/* The whole session. */

static int daemon_ask_to_stop(const char *run_dir)
{
    struct message stop = {.type = MESSAGE_STOP};
    struct request_channel *channel;
    int result, code = request_attach(&channel, run_dir);
    if (code != 0)
        return code;
    code = request_result(channel, &stop, &result, STOP_PATIENCE * CLOCK_SECOND);
    request_abandon(channel);
    return code != 0 ? code : result;
}

/* Asks the first of this host that can be asked. 0, or -errno: why the last could not, -ENOENT: there is none, -EAGAIN: it
 * cannot reach others yet, since its network is being opened. */
static int daemon_ask_a_member(const struct session *session)
{
    int code = -ENOENT;
    for (size_t i = 0; i < session->count && code != 0 && code != -EAGAIN; i++)
        if (session_lives(&session->members[i]) == 1)
            code = daemon_ask_to_stop(session->members[i].run_dir);
    return code;
}

static int daemon_ask_until_all_hear(const struct session *session)
{
    const struct timespec pause = clock_split(50 * CLOCK_MILLISECOND);
    const uint64_t end = clock_monotonic() + STOP_PATIENCE * CLOCK_SECOND;
    int code;
    while ((code = daemon_ask_a_member(session)) == -EAGAIN && clock_monotonic() < end)
        clock_sleep(&pause);
    return code == -EAGAIN ? -ETIMEDOUT : code;
}

static int daemon_wait_until_all_left(const char *root, const struct session *session)
{
    const struct timespec pause = clock_split(50 * CLOCK_MILLISECOND);
    struct progress progress;
    uint64_t began = clock_monotonic();
    size_t left, before = session->count;
    progress_init(&progress, false);
    while ((left = daemon_members_left(root, NULL, session->id)) > 0 &&
           clock_monotonic() - began < STOP_PATIENCE * CLOCK_SECOND) {
        if (left < before)
            began = clock_monotonic();
        before = left;
        if (progress_due(&progress))
            progress_line(&progress, "waiting for %zu daemon%s to hand over and write down their work", left,
                          left == 1 ? "" : "s");
        clock_sleep(&pause);
    }
    progress_finish(&progress);
    if (left == 0)
        return 0;
    error_report("%s: %zu daemon%s of its session %s not ended after %d s (run 'shunt status --root %s')", root, left,
                 left == 1 ? "" : "s", left == 1 ? "has" : "have", STOP_PATIENCE, root);
    return -1;
}

/* Those of this host have left the session by now, and are about to be gone. */
static int daemon_wait_for_processes(const char *root, const struct session *session)
{
    int answer = 0;
    for (size_t i = 0; i < session->count; i++) {
        struct stopping member = {root, session, &session->members[i]};
        int pidfd = session_lives(member.member) == 1 ? (int)SYS2(SYS_pidfd_open, member.member->pid, 0) : -1;
        if (pidfd < 0)
            continue;
        if (session_lives(member.member) == 1 && daemon_wait_for_end(pidfd, &member) < 0)
            answer = -1;
        close(pidfd);
    }
    return answer;
}

static int daemon_stop_all_nodes(const char *root, const struct session *session)
{
    int code = daemon_ask_until_all_hear(session);
    if (code == 0)
        code = daemon_wait_until_all_left(root, session) < 0 || daemon_wait_for_processes(root, session) < 0 ? -1 : 0;
    else if (code == -ETIMEDOUT)
        error_report("%s: not all daemons of its session answer (run 'shunt status --root %s')", root, root);
    else if (code == -EACCES || code == -EPERM)
        error_report("%s: the session belongs to user %s (ask that user to run 'shunt stop --all --root %s')", root,
                     session->user, root);
    else if (code == -ENOENT)
        error_report(
            "%s: no daemon of its session runs on this host (run 'shunt stop --all --root %s' on a host where one does)", root,
            root);
    else
        error_report("%s: the daemon cannot be asked: %s (run 'shunt stop --root %s' on each host of the session)", root,
                     strerror(-code), root);
    return code == 0 ? 0 : -1;
}

static int daemon_stop_one_everywhere(const char *root)
{
    struct session session;
    int error = daemon_read_session(root, &session);
    if (error != 0)
        return error < 0 ? -1 : daemon_judge_stop(root, daemon_stop_former(root, NULL));
    int answer = daemon_is_tool_at_work(&session) ? daemon_stop_former(root, NULL) : daemon_stop_all_nodes(root, &session);
    session_finish(&session);
    return answer;
}

int daemon_stop_everywhere(const struct roots *roots)
{
    int answer = 0;
    for (size_t i = 0; i < roots->count; i++)
        if (daemon_stop_one_everywhere(roots->paths[i]) < 0)
            answer = -1;
    return answer;
}
