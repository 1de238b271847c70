/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One line on standard error that says how far long work is; rewritten in place, at most five times a second.
 */

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool on, shown;
    uint64_t last; /* ns, when the line was written */
};

/* Shown on a terminal, or if `asked`. The first line comes only after half a second of work, unless it was
 * asked. */
void progress_init(struct progress *, bool asked);
/* Is it time for a line? Cheap enough for every file. */
bool progress_due(struct progress *);
void progress_line(struct progress *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Takes the line away again, or ends it if it goes to no terminal. */
void progress_finish(struct progress *);
