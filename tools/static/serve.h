/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The helper's threads. One leads: it waits for calls. While it does one itself, another takes over as soon as a call comes,
 * and is started if there is none. What each has under way stands in memory that the guard shares (guard.h). */

#include <stdbool.h>

#include "linux/seccomp.h"

#define SERVE_WORKERS 64

/* Of each worker the call that it has under way; id 0: none. */
struct serve_board {
    struct seccomp_notif calls[SERVE_WORKERS];
};

/* The status with which the process is to end. */
enum serve_end {
    SERVE_DONE,   /* all programs under the filter have ended */
    SERVE_CANNOT, /* no thread can be started */
    SERVE_AGAIN   /* it has used half of the processor time that it may (RLIMIT_CPU), and nothing is under way: another is to
                     follow */
};
enum serve_end serve_wait(void);
/* Starts to answer. False: no thread can be started. */
bool serve_begin(int listener, struct serve_board *);
