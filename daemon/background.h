/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Into the background, and what the process that waits meanwhile learns. */

#include <errno.h>

/* What start answers with --again, without a sentence, while a tool of the same user holds the root, or the home of a session
 * does not answer: SHUNTD_AGAIN, the status of shuntd, and BACKGROUND_WORD_AGAIN on the way there say it. */
#define START_AGAIN (-ERESTART)
#define BACKGROUND_WORD_AGAIN 'a'

/* Forks. The parent waits until the child says that it serves and exits 0, or passes on the sentence that the
 * child printed and exits 1, or SHUNTD_AGAIN: it does not return. The child gets the descriptor for background_ready, or -1. */
int background_fork(void);
/* Tells the process that waits (supervise.h) what start answered, and gives standard error to the log if it serves. */
void background_ready(int ready, int code, const char *run_dir);
/* From here on standard error is the log in the run directory, and the terminal is left alone. */
void background_detach(const char *run_dir);
