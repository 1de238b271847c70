/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "background.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "complaint.h"
#include "session/session.h"
#include "shuntd.h"

/* Of the process that waits: the child, and whether that was told to end. */
static struct {
    volatile pid_t child;
    volatile sig_atomic_t told;
} waits;

static const int ending_signals[] = {SIGTERM, SIGINT, SIGHUP};
#define ENDING_SIGNALS (sizeof ending_signals / sizeof *ending_signals)
static void background_pass_on(int number)
{
    if (!waits.told)
        kill(waits.child, SIGTERM);
    waits.told = 1;
}

static void background_block_ending(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ENDING_SIGNALS; i++)
        sigaddset(&set, ending_signals[i]);
    sigprocmask(SIG_BLOCK, &set, before);
}

/* A signal that is ignored, as by nohup, stays so. */
static void background_catch_ending(void)
{
    const struct sigaction action = {.sa_handler = background_pass_on};
    struct sigaction now;
    for (size_t i = 0; i < ENDING_SIGNALS; i++)
        if (sigaction(ending_signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(ending_signals[i], &action, NULL);
}

/* Told to end, it ends once the child has, whatever that said before. Its status. */
static int background_wait_for_child(int ready, const sigset_t *before)
{
    char word = 0;
    ssize_t got;
    sigset_t mask;
    background_catch_ending();
    sigprocmask(SIG_SETMASK, before, NULL);
    while ((got = read(ready, &word, 1)) < 0 && errno == EINTR)
        continue;
    background_block_ending(&mask);
    if (got == 1 && word == 'y' && !waits.told)
        return 0;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    int status = 0;
    while (waitpid(waits.child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (got == 1 && word == BACKGROUND_WORD_AGAIN)
        return SHUNTD_AGAIN;
    if (WIFSIGNALED(status) || WEXITSTATUS(status) == 0) /* else it has said why */
        complain_interrupted();
    return 1;
}

/* A lock, or a pipe, that a script holds would last as long as the daemon. */
static void background_close_inherited(void)
{
    if (SYS3(SYS_close_range, STDERR_FILENO + 1, ~0u, 0) != -ENOSYS)
        return;
    for (long fd = sysconf(_SC_OPEN_MAX); fd > STDERR_FILENO; fd--)
        close((int)fd);
}

int background_fork(void)
{
    int ends[2];
    sigset_t before;
    background_close_inherited();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return complain(-1, "cannot make a pipe: %s (raise the limit on open files with 'ulimit -n')", strerror(errno));
    background_block_ending(&before);
    waits.child = fork();
    if (waits.child < 0)
        return complain(-1, "cannot start a process: %s (end other processes and run this again)", strerror(errno));
    if (waits.child > 0) {
        close(ends[1]);
        _exit(background_wait_for_child(ends[0], &before));
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    setsid();
    return ends[1];
}

void background_detach(const char *run_dir)
{
    char log[PATH_MAX + 8];
    snprintf(log, sizeof log, "%s/log", run_dir);
    int to = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (none >= 0) {
        dup2(none, STDIN_FILENO);
        dup2(none, STDOUT_FILENO);
    }
    if (to >= 0 || none >= 0)
        dup2(to >= 0 ? to : none, STDERR_FILENO);
    if (none >= 0)
        close(none);
    if (to >= 0)
        close(to);
    if (chdir("/") != 0)
        log_line("/: cannot be made the working directory");
}

void background_ready(int ready, int code, const char *run_dir)
{
    char words[1 + SESSION_RUN_MAX] = {code == START_AGAIN ? BACKGROUND_WORD_AGAIN : 'n', '\0'};
    if (ready < 0)
        return;
    if (code == 0) {
        snprintf(words, sizeof words, "y%s", run_dir);
        background_detach(run_dir);
    }
    if (write(ready, words, strlen(words)) < 0)
        log_line("shuntd: the process that started it has ended");
    close(ready);
}
