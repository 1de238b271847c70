/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "background.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/program_signals.h"
#include "complaint.h"
#include "keep_log.h"
#include "listen/predecessor.h"
#include "session/kept_log.h"
#include "shuntd.h"
#include "supervise.h"

#define BRIEFLY CLOCK_SECOND           /* a daemon that crashes within this time does so again, probably: */
#define PATIENCE 8                     /* so many in a row are too many; */
#define PAUSE (50 * CLOCK_MILLISECOND) /* the second is waited with so long, and each further one twice as long */

static volatile pid_t daemon_pid;
static volatile sig_atomic_t ending;

static void supervise_pass_on(int number)
{
    ending = 1;
    if (daemon_pid > 0)
        kill(daemon_pid, number);
}

/* The daemon was told to end by others than its supervisor, and says so. */
static void supervise_note_end(int number)
{
    ending = 1;
}

static void supervise_handle(void (*handler)(int))
{
    const bool none = handler == SIG_DFL;
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = none ? SIG_DFL : supervise_note_end;
    sigaction(SHUNTD_NO_MORE, &action, NULL);
    action.sa_handler = SIG_IGN; /* also in a daemon that does not serve yet */
    sigaction(SIGHUP, &action, NULL);
    program_signals_ignore();
}

/* 0: in the daemon, with *to to write to; its process id: in the supervisor, with *from to read from; -1, also if the
 * supervisor was told to end, which there was no daemon to pass on to. What is sent meanwhile waits. */
static pid_t supervise_start_daemon(int *to, int *from)
{
    int ends[2];
    sigset_t all, before;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = ending == 0 ? fork() : -1;
    if (pid == 0)
        supervise_handle(SIG_DFL);
    daemon_pid = pid;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(pid == 0 ? ends[0] : ends[1]);
    *to = ends[1];
    *from = ends[0];
    return pid;
}

/* What it says: a word and, if it serves ('y'), its run directory. */
static char supervise_hear(int from, char run_dir[PATH_MAX])
{
    char word = 0;
    size_t length = 0;
    ssize_t got;
    while ((got = read(from, &word, 1)) < 0 && errno == EINTR)
        continue;
    while (got > 0 && word == 'y' && length < PATH_MAX - 1)
        if ((got = read(from, run_dir + length, PATH_MAX - 1 - length)) > 0)
            length += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
    run_dir[length] = '\0';
    close(from);
    return word;
}

/* True: it ended as it was told to. One that could not start has said why. */
static bool supervise_wait_for_end(pid_t pid, bool served)
{
    siginfo_t info;
    int status = 0;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    daemon_pid = 0; /* before its number is free for another process, to which a signal would be passed on */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFSIGNALED(status) && ending != 0 && !served) /* before it could say so itself */
        complain_interrupted();
    else if (WIFSIGNALED(status))
        log_warning("shuntd: ended by signal %d", WTERMSIG(status));
    else if (served)
        log_warning("shuntd: ended with status %d", WEXITSTATUS(status));
    return ending != 0;
}

/* How many daemons in a row have lived briefly now; false: it is enough. */
static bool supervise_may_go_on(unsigned *brief, uint64_t lived)
{
    *brief = lived < BRIEFLY ? *brief + 1 : 0;
    if (*brief >= PATIENCE)
        return false;
    const struct timespec pause = clock_split(*brief < 2 ? 0 : PAUSE << (*brief - 2));
    clock_sleep(&pause); /* a signal ends it early */
    return ending == 0;
}

/* The first daemon does not serve. */
static void supervise_give_up(int ready, char word)
{
    if (word == BACKGROUND_WORD_AGAIN && write(ready, &word, 1) != 1)
        log_line("shuntd: the process that started it has ended");
    _exit(1);
}

/* In the supervisor, once the first daemon serves. */
static void supervise_go_to_background(int ready, const char *run_dir)
{
    char word = 'y';
    background_detach(run_dir);
    if (write(ready, &word, 1) != 1)
        log_line("shuntd: the process that started it has ended");
    close(ready);
}

int supervise(int ready, const char **former, const struct shuntd_options *options)
{
    static char run_dir[PATH_MAX];
    char heard[PATH_MAX];
    unsigned brief = 0;
    int to, from;
    supervise_handle(supervise_pass_on);
    for (;;) {
        uint64_t began = clock_monotonic();
        pid_t pid = supervise_start_daemon(&to, &from);
        if (pid == 0) {
            *former = run_dir[0] != '\0' ? run_dir : NULL;
            if (*former == NULL)
                close(ready);
            return to;
        }
        if (pid < 0 && ending == 0)
            log_warning("cannot start a process: %s", strerror(errno));
        else if (pid < 0)
            complain_interrupted();
        const char word = pid > 0 ? supervise_hear(from, heard) : 'n';
        const bool serves = word == 'y', first = run_dir[0] == '\0';
        if (serves && first) {
            strcpy(run_dir, heard);
            supervise_go_to_background(ready, run_dir);
        }
        const bool has_ended = pid > 0 && supervise_wait_for_end(pid, serves);
        if (first && !serves)
            supervise_give_up(ready, word);
        if (has_ended)
            _exit(0);
        if (!supervise_may_go_on(&brief, clock_monotonic() - began))
            break;
        log_line("shuntd is started again");
    }
    if (ending == 0)
        log_warning(
            "shuntd: crashed %u times in a row, each time within a second, so it is not started again (remove the cause "
            "that is named above, then run 'shunt start')",
            PATIENCE);
    predecessor_abandon(run_dir);
    keep_log(options, kept_log_open(run_dir));
    _exit(1);
}
