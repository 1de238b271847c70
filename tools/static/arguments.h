/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A call's arguments, as calls.h spells them: fetched from the caller's memory, and what comes back written there. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "calls.h"
#include "caller.h"
#include "where.h"

#define ARGUMENTS_PATHS 2
#define ARGUMENTS_BYTES 65536 /* the kernel has no larger attributes; a listing may come in pieces */

/* Of one call. Large: each worker has one. */
struct arguments {
    const struct calls_entry *call;
    const uint64_t *given; /* the caller's */
    pid_t tid;
    long made[CALLS_ARGUMENTS + 2]; /* of call->as */
    unsigned flags;                 /* of letter a */
    int objection;                  /* to one path of two: it cannot be read, or its directory is none; 0 */
    bool is_hidden;                 /* we may not look at the caller */
    bool is_unknown;                /* it cannot be told where a path leads */
    struct arguments_path {
        int at;                    /* the caller's descriptor */
        bool is_there, is_in_root; /* a path was given; it leads to a root */
        bool is_spelt;             /* what /proc/self means to the caller was on the way */
        unsigned where;            /* in `made` */
        char given[PATH_MAX], text[WHERE_TEXT];
    } paths[ARGUMENTS_PATHS];
    unsigned count;
    int opened[ARGUMENTS_PATHS], other; /* our descriptors of the caller's; -1 */
    uint64_t back;                      /* where what comes back goes */
    size_t back_size;                   /* the room there */
    bool back_by_result;                /* as much as the result says */
    char text[256], in[ARGUMENTS_BYTES + 1], out[ARGUMENTS_BYTES];
};

/* Reads the paths, and finds whether they lead to a root. 1: one does; 0: none does, or the kernel is to say what is wrong. */
int arguments_look(struct arguments *, const struct calls_entry *, const uint64_t given[CALLS_ARGUMENTS], pid_t);
/* Makes the arguments for our own call; where that takes no directory, this thread goes into the caller's. 0, or -errno for the
 * caller: -EFAULT and the like. In any case arguments_release. */
int arguments_make(struct arguments *);
/* Hands back what the call has written, after its result. The result, or what caller_write says. */
long arguments_back(struct arguments *, long result);
/* Gives back what was opened; may be called again. */
void arguments_release(struct arguments *);
