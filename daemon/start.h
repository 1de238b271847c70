/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* From the command line to a daemon that serves, and back. */

#include <errno.h>
#include <stdbool.h>

#include "shuntd.h"

/* 0; 1: help or version was printed; -EINVAL: a sentence was printed. */
int start_options(struct shuntd_options *, int argc, char *argv[]);

/* What start answers with --again, without a sentence, while a tool of the same user holds the root, or the home of a session
 * does not answer: SHUNTD_AGAIN, the status of shuntd, and START_WORD_AGAIN on the way there say it. */
#define START_AGAIN (-ERESTART)
#define START_WORD_AGAIN 'a'

/* Forks. The parent waits until the child says that it serves and exits 0, or passes on the sentence that the
 * child printed and exits 1, or SHUNTD_AGAIN: it does not return. The child gets the descriptor for start_ready, or -1. */
int start_background(void);
/* Says that it was told to end before it served: -EINTR. */
int start_interrupted(void);
/* Tells the process that waits (supervise.h) what start answered, and gives standard error to the log if it serves. */
void start_ready(int ready, int code);
/* From here on standard error is the log in the run directory, and the terminal is left alone. */
void start_detach(const char *run_dir);

/* Root, session, branch, run directory, index, channel, disk, home. On failure a sentence was printed and
 * start_undo is to be called. */
int start(struct shuntd *);
/* The only clean-up list: takes a half-started daemon. The log stays if it failed while it served: it says why. */
void start_undo(struct shuntd *, bool failed);
