/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Waiting for signals, ends of children and other descriptors at once. Between signal_wait_init and
 * signal_wait_finish SIGTERM, SIGINT, SIGHUP, SIGCHLD and those for programs (base/program_signals.h) come only here; those
 * that were ignored before (nohup) still are.
 */

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct signal_wait {
    int fd;
    sigset_t before;  /* what a child is given back */
    bool by_terminal; /* the last signal: a terminal sent it to all processes in its foreground */
    pid_t program;    /* it is passed the signals for programs, below 0: its group is; 0: they are dropped */
};

/* 0, or -1 after a complaint. */
int signal_wait_init(struct signal_wait *);
void signal_wait_finish(struct signal_wait *);

/* Until a signal comes, one of `others` has something (see revents), or the time is over (-1: never). The
 * number of the signal; 0 for what else happened, a child that ended among it. At most WATCH_MAX others. */
#define WATCH_MAX 4096
int signal_wait_next(struct signal_wait *, struct pollfd *others, size_t count, int milliseconds);
