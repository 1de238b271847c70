/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "cli/signal_wait.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/program_signals.h"
#include "cli/command.h"

/* A signal that is ignored comes all the same once it is blocked. */
static void signal_wait_add_unless_ignored(sigset_t *set, int number)
{
    struct sigaction now;
    if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
        sigaddset(set, number);
}

int signal_wait_init(struct signal_wait *watch)
{
    sigset_t set;
    sigemptyset(&set);
    signal_wait_add_unless_ignored(&set, SIGTERM);
    signal_wait_add_unless_ignored(&set, SIGINT);
    signal_wait_add_unless_ignored(&set, SIGHUP);
    for (size_t i = 0; i < PROGRAM_SIGNALS; i++)
        signal_wait_add_unless_ignored(&set, program_signals[i]);
    signal(SIGCHLD, SIG_DFL);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &watch->before);
    watch->by_terminal = false;
    watch->program = 0;
    watch->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (watch->fd >= 0)
        return 0;
    error_report("signals: cannot be waited for: %s (raise the limit on open files with 'ulimit -n', and run this again)",
                 strerror(errno));
    sigprocmask(SIG_SETMASK, &watch->before, NULL);
    return -1;
}

void signal_wait_finish(struct signal_wait *watch)
{
    close(watch->fd);
    sigprocmask(SIG_SETMASK, &watch->before, NULL);
}

static int signal_wait_take(struct signal_wait *watch)
{
    struct signalfd_siginfo info;
    while (read(watch->fd, &info, sizeof info) == sizeof info) {
        const int number = (int)info.ssi_signo;
        if (program_signals_has(number) && watch->program != 0)
            kill(watch->program, number);
        if (number == SIGCHLD || program_signals_has(number))
            continue;
        watch->by_terminal = info.ssi_code == SI_KERNEL;
        return number;
    }
    return 0;
}

int signal_wait_next(struct signal_wait *watch, struct pollfd *others, size_t count, int milliseconds)
{
    struct pollfd all[WATCH_MAX + 1] = {{.fd = watch->fd, .events = POLLIN}};
    for (size_t i = 0; i < count; i++)
        all[i + 1] = others[i];
    int ready = poll(all, count + 1, milliseconds);
    for (size_t i = 0; i < count; i++)
        others[i].revents = ready > 0 ? all[i + 1].revents : 0;
    return signal_wait_take(watch);
}
