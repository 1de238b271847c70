/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What becomes of the roots of `shunt run` and shunt-launch once their daemons have stopped: --export. */

#include <stdint.h>

#include "cli/roots.h"

struct command;
struct export_sum;
struct owners;

enum leave {
    LEAVE_NOW,
    LEAVE_LATER,  /* say by which command */
    LEAVE_SUBMIT, /* ... and have Slurm run it on one node when the job of this process has ended */
    LEAVE_NEVER,
};

/* now, background, later, later,submit or never. 0, or -1 after a complaint. background is LEAVE_NOW for what is left at the
 * end; *quiet is then how long names of a directory stand still, in ns, before it leaves (live.h), else 0. */
#define LEAVE_WORDS "now|background[,SECONDS]|later[,submit]|never"
int leave_take(const struct command *, const char *word, enum leave *, uint64_t *quiet);
/* Once for each root; the sum gets what was exported now added, or is NULL; owners as in export.h, or NULL. The exit status of
 * a command that did nothing else; it complains. */
int leave_root(const char *root, enum leave, const struct owners *, struct export_sum *);

/* Which roots are plain, before anything is started. */
void leave_note_plain(const struct roots *, bool plain[ROOTS_MAX]);
/* What was started came to nothing and has stopped: those are plain again. It complains. */
void leave_undo(const struct roots *, const bool was_plain[ROOTS_MAX]);
