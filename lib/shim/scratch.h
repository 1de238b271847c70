/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Room for path texts while an operation runs: too large for an 8 KiB signal stack, and malloc and
 * thread-local memory of that size are not to be had in somebody else's process. A pool of mapped pieces that
 * operations take and give back; it grows to the largest number of operations that were under way at once.
 * Async-signal-safe, thread-safe: a handler that interrupts an operation takes another piece. */

#include <limits.h>
#include <linux/stat.h>
#include <stdbool.h>

#include "index/view.h"
#include "path/path.h"
#include "request/request.h"
#include "shim/program.h"

#define SCRATCH_PIECES 4096

/* Of a directory: what the kernel says of it. */
struct scratch_seen {
    struct dirid dir;
    uint64_t device, mount; /* mount: through which it was reached; 0: the kernel does not say */
    bool sticky;            /* ... and others may write it: the kernel protects what is in it */
    int pin;                /* it, open, or -1 */
};

struct scratch {
    uint32_t taken;
    char text[2][PATH_MAX + 8]; /* the parent's text; the text a symbolic link led to (by turns) */
    char real[PATH_MAX + 8];    /* a place in a branch; before it is found, whatever place is looked at */
    char place[RECORD_NAME_MAX + 1];
    struct scratch_seen seen; /* a target's parent, or the directory of root_of_directory */
    struct {
        const char *path;
        unsigned want;
        int at;
        struct path_parts parts;
        bool is_at_parent;         /* it was looked at (target_first_look.c, which has little stack); else */
        enum path_verdict verdict; /* what the words said, seen from the working directory (target.c) */
    } look;
    struct view_found found; /* of a directory: root_of_directory's, or its caller's */
    struct {
        struct statx seen;
        int at;
        bool follows;
        uint16_t kept;
        char *name;
    } end; /* dead_end.c and beside.c, which have little stack */
    struct {
        struct program_look looks[2];
        struct statx seen;
        struct program_elf elf;
        struct program_head head;
    } program; /* wrap_exec.c and program.c, likewise */
    struct request_answer answer;
    struct request_hold hold; /* between target_hold and how it went */
};

/* NULL: no memory. */
struct scratch *scratch_take(void);
void scratch_give(struct scratch *);
