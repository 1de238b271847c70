/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* SIGINT, SIGTERM and SIGHUP ask long work to end between two steps. What catches them may be called by what does, too: the
 * signal is one for all of them. */

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

void stopping_catch(void);
/* ... and SIGPIPE, when what reads the output has ended: for work that leaves a claim on a root if it is killed. */
void stopping_catch_pipe(void);
#define STOPPING_LEASE SIGALRM /* which is not caught: no signal came */
/* The signal that came, or 0; STOPPING_LEASE when the lease is over (clock_boot; UINT64_MAX: it has no end), from any thread.
 */
void stopping_set_lease(uint64_t until);
int stopping(void);
/* The same, and it is forgotten: what follows is done, unless another one comes. */
int stopping_take(void);
/* Back to what the signals did before, if that was the outermost stopping_catch. The signal that came since the caller looked
 * last, or 0: it is forgotten then. */
int stopping_release(void);

/* As fork, flushed; the child has the signals as they were before stopping_catch, all of them unblocked. */
pid_t stopping_fork(void);
/* Waits for the end of that child, to which a signal that came, or comes, is passed on, once. Its status as of waitpid, or
 * -errno. */
int stopping_wait(pid_t child, int *status);
