/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Ends the daemons of jobs that have ended, and removes what daemons that were killed left in the run directory. What lies
 * below a root is not looked at. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "batch/job_state.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "config/config.h"
#include "programs/site.h"
#include "request/users.h"
#include "serving/sessions.h"
#include "session/kept_log.h"
#include "union/layout.h"
#include "commands.h"

#define CLEANUP_PATIENCE 20 /* seconds, for a daemon to write down its work */
#define CLEANUP_KILLED 5    /* ... and to be gone once it is killed */

const struct choice command_cleanup_choices[] = {
    {'u', "user", "USER", "only sessions of that user (default: all that may be seen)"},
    {'j', "job", "ID", "only sessions of that job, which has ended"},
    {'a', "all", NULL, "also daemons of jobs that go on, and of no job"},
    {0},
};

struct cleanup {
    uid_t user;      /* -1: all */
    const char *job; /* NULL: any */
    bool all;
    struct sessions sessions;
    bool failed;
};

static const char *command_cleanup_name(const struct session_here *here)
{
    return here->is_described ? here->about.root : here->run_dir;
}

static void command_cleanup_tell(const struct session_here *here, const char *what)
{
    const char *job = here->about.job;
    describe_print(command_cleanup_name(here));
    printf(": %s (user %s%s%s)\n", what, describe_user(here->uid), *job ? ", job " : "", job);
}

/* Files. */

/* The names that shunt gives, in a directory that is that user's: nothing else. What says whose they are goes last: of a
 * directory that does not, any daemon that is found nowhere else may be the one. */
static int command_cleanup_remove(const char *run_dir, uid_t uid)
{
    static const char *const files[] = {
        "index",          "channel", "channel.new", LAYOUT_CATALOGUE "-boot", LAYOUT_CATALOGUE_LOCK,
        LAYOUT_CATALOGUE, "log",     RUN_DIRS_ABOUT};
    struct stat stat;
    int code = 0, directory = open(run_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(directory, &stat) != 0)
        code = -errno;
    else if (stat.st_uid != uid)
        code = -EPERM;
    for (size_t i = 0; i < sizeof files / sizeof *files && code == 0; i++)
        if (unlinkat(directory, files[i], 0) != 0 && errno != ENOENT)
            code = -errno;
    close(directory);
    return code != 0 || rmdir(run_dir) == 0 || errno == ENOENT ? code : -errno;
}

/* Of users that were killed with the daemon, if nobody else has become one. */
static void command_cleanup_remove_users(const struct session_here *here)
{
    char path[sizeof here->run_dir + 16];
    struct stat stat;
    struct text t;
    text_init(&t, path, sizeof path);
    users_path(&t, here->run_dir);
    int fd = text_ok(&t) ? open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_uid == here->uid && users_lock(fd) == 0 &&
        users_count(fd) == 0)
        unlink(path);
    close(fd);
}

/* The live catalogue may have a place of its own. */
static void command_cleanup_remove_catalogue(const struct session_here *here)
{
    struct config config;
    char path[sizeof here->run_dir];
    config_read(&config, environ);
    const size_t base = strlen(config.run_base);
    if (config.catalogue_base != NULL && strncmp(here->run_dir, config.run_base, base) == 0 &&
        snprintf(path, sizeof path, "%s%s", config.catalogue_base, here->run_dir + base) < (int)sizeof path)
        command_cleanup_remove(path, here->uid);
}

/* The user's own; of other users' it is not root's to write into their directories. */
static void command_cleanup_keep_log(const struct session_here *here, int log)
{
    char directory[PATH_MAX], path[PATH_MAX];
    if (!settings_log_dir(site_settings(), environ, directory)) {
        close(log);
        return;
    }
    const int code = kept_log_keep(directory, log, here->is_described ? here->about.node : "node", getpid(), path);
    if (code == 1)
        error_report("%s: something went wrong while it was served (read %s)", command_cleanup_name(here), path);
    else if (code < 0)
        error_report("%s: the log cannot be kept there: %s (set SHUNT_LOG_DIR)", directory, strerror(-code));
}

static void command_cleanup_remove_files(struct cleanup *cleanup, const struct session_here *here)
{
    const int log = here->uid == geteuid() ? kept_log_open(here->run_dir) : -1;
    int code = command_cleanup_remove(here->run_dir, here->uid);
    if (log >= 0)
        command_cleanup_keep_log(here, log);
    if (code == 0) {
        command_cleanup_remove_catalogue(here);
        command_cleanup_remove_users(here);
        command_cleanup_tell(here, "its files in the run directory are removed");
        return;
    }
    const bool is_forbidden = code == -EPERM || code == -EACCES;
    error_report("%s: cannot be removed: %s%s", here->run_dir, strerror(-code),
                 code == -ENOTEMPTY ? " (look at the files there, they are not shunt's)"
                 : is_forbidden     ? " (run this again as its owner, or as root)"
                                    : " (look at its file system, then run this again)");
    cleanup->failed = true;
}

/* Daemons. */

static bool command_cleanup_wait(int pidfd, unsigned seconds)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    const uint64_t until = clock_monotonic() + seconds * CLOCK_SECOND;
    int got = 0;
    for (uint64_t now = clock_monotonic(); got <= 0 && now < until; now = clock_monotonic())
        got = poll(&end, 1, (int)((until - now) / CLOCK_MILLISECOND) + 1);
    return got > 0;
}

/* 0: it has ended, or is another's by now; -ETIMEDOUT: it was told, and has not ended; another error: it could not be told. */
static int command_cleanup_tell_process(struct session_here *here, pid_t pid, int pidfd, int signal, unsigned seconds)
{
    const int looked = sessions_look_again(here);
    if (looked < 0)
        return looked;
    if (here->supervisor != pid && here->daemon != pid && !sessions_is_of(here, pid))
        return 0;
    const int code = (int)SYS4(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
    if (code != 0)
        return code == -ESRCH ? 0 : code;
    return command_cleanup_wait(pidfd, seconds) ? 0 : -ETIMEDOUT;
}

/* A process of the session, by a descriptor, so that its number is not another's meanwhile. As above. */
static int command_cleanup_end(struct session_here *here, pid_t pid, int signal, unsigned seconds)
{
    int pidfd = pid != 0 ? (int)SYS2(SYS_pidfd_open, pid, 0) : -ESRCH;
    if (pidfd < 0)
        return pidfd == -ESRCH ? 0 : pidfd;
    const int code = command_cleanup_tell_process(here, pid, pidfd, signal, seconds);
    close(pidfd);
    return code;
}

/* The supervisor passes on what it is told, and ends after its daemon. One that hangs is killed: what it served is on disk, and
 * the next one reads it from there. One that could not be told does not hang. As above. */
static int command_cleanup_stop(struct session_here *here)
{
    const pid_t first = here->supervisor != 0 ? here->supervisor : here->daemon;
    int code = command_cleanup_end(here, first, SIGTERM, CLEANUP_PATIENCE);
    const bool hangs = code == -ETIMEDOUT;
    if (code == 0 || hangs)
        code = sessions_look_again(here);
    if (code < 0 || (!hangs && here->daemon == 0 && here->supervisor == 0))
        return code;
    code = command_cleanup_end(here, here->supervisor, SIGKILL, CLEANUP_KILLED);
    return code != 0 ? code : command_cleanup_end(here, here->daemon, SIGKILL, CLEANUP_KILLED);
}

static void command_cleanup_complain(const struct session_here *here, int pid, int code)
{
    if (code == -ETIMEDOUT)
        error_report("%s: process %d does not end (its file system may hang; look at /proc/%d/stack)",
                     command_cleanup_name(here), pid, pid);
    else if (code == -EPERM || code == -EACCES)
        error_report("%s: process %d cannot be ended: %s (run this again as its user, or as root)", command_cleanup_name(here),
                     pid, strerror(-code));
    else
        error_report("%s: process %d cannot be ended: %s (run this again, or 'kill %d')", command_cleanup_name(here), pid,
                     strerror(-code), pid);
}

static void command_cleanup_stop_daemon(struct cleanup *cleanup, struct session_here *here)
{
    const pid_t pid = here->daemon != 0 ? here->daemon : here->supervisor;
    const int code = command_cleanup_stop(here);
    if (code != 0) {
        command_cleanup_complain(here, (int)pid, code);
        cleanup->failed = true;
        return;
    }
    command_cleanup_tell(here, "its daemon has ended");
    if (access(here->run_dir, F_OK) == 0)
        command_cleanup_remove_files(cleanup, here);
}

/* Which. */

static bool command_cleanup_is_over(const struct cleanup *cleanup, const struct session_here *here)
{
    const char *job = here->about.job;
    if (cleanup->all)
        return true;
    if (*job == '\0' || (cleanup->job == NULL && !job_state_has_ended(here->about.scheduler, job)))
        return false;
    const pid_t other = sessions_other_job(here);
    if (other != 0) {
        describe_print(command_cleanup_name(here));
        printf(": left as it is, since process %d of user %s, which is not of job %s, uses it\n", (int)other,
               describe_user(here->uid), job);
    }
    return other == 0;
}

static void command_cleanup_one(struct cleanup *cleanup, struct session_here *here)
{
    if (cleanup->job != NULL && strcmp(here->about.job, cleanup->job) != 0)
        return;
    if (here->state == SESSIONS_SERVES || here->state == SESSIONS_RESTARTS) {
        if (command_cleanup_is_over(cleanup, here))
            command_cleanup_stop_daemon(cleanup, here);
    } else if (here->state == SESSIONS_ENDED) {
        if (!sessions_is_beginning(&cleanup->sessions, here))
            command_cleanup_remove_files(cleanup, here);
    } else if (cleanup->job != NULL || cleanup->all) {
        error_report("%s: left as it is, %s", command_cleanup_name(here),
                     here->state == SESSIONS_CONTAINER ? "its daemon runs in a container (end that container)"
                                                       : "it is of another version of shunt (use the shunt of that version)");
        cleanup->failed = true;
    }
}

static int command_cleanup_all(struct cleanup *cleanup)
{
    if (sessions_look(&cleanup->sessions, cleanup->user) < 0)
        cleanup->failed = true;
    cleanup->failed |= cleanup->sessions.is_partial;
    for (size_t i = 0; i < cleanup->sessions.count; i++)
        command_cleanup_one(cleanup, cleanup->sessions.at[i]);
    sessions_finish(&cleanup->sessions);
    return cleanup->failed ? STATUS_FAILED : STATUS_OK;
}

int command_cleanup(const struct command *command, int argc, char **argv)
{
    struct cleanup cleanup = {.user = (uid_t)-1};
    int end, wrong = 0;
    while (wrong == 0 && (end = command_option(command, argc, argv)) >= 0)
        if (end == 'u')
            wrong = sessions_user(optarg, &cleanup.user);
        else if (end == 'j')
            cleanup.job = optarg;
        else
            cleanup.all = true;
    if (wrong != 0 || end != COMMAND_END)
        return wrong != 0 ? STATUS_USAGE : command_status(end);
    if (optind < argc)
        return error_usage(command, "unexpected argument '%s'", argv[optind]);
    if (cleanup.job != NULL && *cleanup.job == '\0')
        return error_usage(command, "--job is empty, so no job is known");
    return command_cleanup_all(&cleanup);
}
