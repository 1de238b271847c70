/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "leaving/background.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/program_signals.h"
#include "base/sys.h"
#include "leaving/live.h"

/* In the child: no descriptor of the parent's stays open, on whose end somebody may wait, and no signal of the terminal ends it
 * before the command. */
static void background_leave_parent(pid_t parent)
{
    static const int defaults[] = {SIGTERM, SIGCHLD, SIGPIPE}, ignored[] = {SIGINT, SIGQUIT, SIGHUP};
    sigset_t none;
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        signal(defaults[i], SIG_DFL);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    program_signals_ignore();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(1);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    SYS3(SYS_close_range, 3, ~0U, 0);
}

void background_begin(struct background *child, const struct roots *roots, const char *node, uint64_t quiet)
{
    const struct live_options options = {.quiet = quiet};
    const pid_t parent = getpid();
    fflush(NULL);
    *child = (struct background){.pid = fork(), .fd = -1};
    if (child->pid == 0) {
        background_leave_parent(parent);
        live_again_and_again(roots, node, &options);
        _exit(0);
    }
    if (child->pid > 0)
        child->fd = (int)SYS2(SYS_pidfd_open, child->pid, 0);
    else
        child->pid = 0;
}

void background_end(struct background *child)
{
    struct pollfd ends = {.fd = child->fd, .events = POLLIN};
    if (child->pid == 0)
        return;
    if (child->fd >= 0) {
        SYS4(SYS_pidfd_send_signal, child->fd, SIGTERM, NULL, 0);
        while (poll(&ends, 1, -1) < 0 && errno == EINTR)
            continue;
        close(child->fd);
    } else {
        kill(child->pid, SIGTERM);
    }
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    child->pid = 0;
}
