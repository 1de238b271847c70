/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* While a thread has a claim it takes no signal: a handler that wants the same name would wait for the end of what it has
 * interrupted, one that leaves by longjmp would never give it back, and others would wait for a process that is stopped. To
 * hold signals back is two system calls. They are spared where nothing of that can be: as long as the process has had no
 * handler for a signal that would be held back, and has no terminal from which it is stopped. A signal that ends the process
 * may come: the daemon settles what it has left as after SIGKILL, and what a vfork child has left when its parent ends.
 *
 * Handlers are seen when they are set (wrap_signal.c), and counted for good. One that another thread sets during the call is
 * none of its. libc's own (pthread_cancel, setuid of all threads) touch no file; a thread that may be cancelled at any moment
 * may not call what has a path (POSIX). What the library does not see is a handler that is set by the instruction of a system
 * call. Slurm stops a job by SIGTSTP and SIGSTOP, the second of which nobody can hold back: then all of it is stopped. */

#include <stdbool.h>
#include <stdint.h>

/* Each word stands for itself, relaxed. A forked child goes on with it; a vfork child sets it for its parent, too. */
struct interrupts_state {
    bool are_seen;    /* the wrappers are there: set in their constructor */
    uint32_t handled; /* there was a handler: set, and never taken back */
    int32_t terminal; /* 0: not asked, 1: there may be one, -1: there is none */
};

struct interrupts_held {
    bool are_held;
    uint64_t mask; /* that stood before */
};

/* In the constructor of the wrappers: handlers are seen from now on, and there was none before. */
void interrupts_start(void);
/* Before a handler is set. Async-signal-safe, thread-safe. */
void interrupts_will_be_handled(void);
/* May a signal come whose handler has to do with what the library has under way? Async-signal-safe, thread-safe. */
bool interrupts_may_do_harm(void);
/* Lets no signal in, if one could do harm, until interrupts_let. Async-signal-safe, thread-safe. */
struct interrupts_held interrupts_hold(void);
void interrupts_let(struct interrupts_held);
