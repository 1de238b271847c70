/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What is to be measured, as the command line says. Pure, but for complaints. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/command.h"
#include "programs/rank.h"

enum plan_operation {
    PLAN_CREATE = 0, /* open with O_CREAT and O_EXCL, write, close */
    PLAN_OPEN,       /* open and close */
    PLAN_STAT,
    PLAN_UTIME,
    PLAN_READDIR, /* of the whole directory; a name is counted as one operation */
    PLAN_RENAME,  /* within the directory */
    PLAN_UNLINK,
    PLAN_OPERATIONS,
};

enum plan_configuration {
    PLAN_PRIVATE = 0, /* natively, a directory for each process */
    PLAN_SHARED,      /* natively, one directory */
    PLAN_SHUNT,       /* under shunt, one directory */
    PLAN_SHUNT_PRIVATE,
    PLAN_CONFIGURATIONS,
};

#define PLAN_PROCESSES_MAX 4096
#define PLAN_FILES_MAX 9999999
#define PLAN_REPETITIONS_MAX 1000
#define PLAN_SIZE_MAX (1ull << 40)
#define PLAN_SIZES_MAX 8
#define PLAN_PLOTS_MAX 4

enum plan_format { PLAN_TEXT = 0, PLAN_JSON, PLAN_CSV };

struct plan {
    const char *directory; /* as it was given */
    struct rank rank;
    uint64_t processes, fakes; /* fakes: pretended nodes; 0: none are */
    uint64_t files;            /* of each process */
    uint64_t repetitions, warm_up;
    uint64_t sizes[PLAN_SIZES_MAX];
    size_t size_count;
    unsigned operations, neighbour, configurations; /* sets: 1 << one of the above */
    const char *placement, *leaf_full;              /* for the daemon; NULL: its own defaults */
    const char *plots[PLAN_PLOTS_MAX];
    size_t plot_count;
    enum plan_format format;
};

extern const char *const plan_operations[PLAN_OPERATIONS], *const plan_configurations[PLAN_CONFIGURATIONS];

static inline bool plan_has(unsigned set, unsigned member)
{
    return set >> member & 1;
}

static inline bool plan_is_shunt(unsigned configuration)
{
    return configuration >= PLAN_SHUNT;
}

static inline bool plan_is_private(unsigned configuration)
{
    return configuration == PLAN_PRIVATE || configuration == PLAN_SHUNT_PRIVATE;
}

extern const struct choice plan_choices[];

/* COMMAND_END, or what command_option has answered last: then the subcommand is over. */
int plan_read(struct plan *, const struct command *, int argc, char **argv);

/* The configuration whose turn it is: of every repetition's all, in turn; every second repetition runs
 * backwards, so that what becomes slower or faster in the course of time does so for all alike. */
unsigned plan_turn(const struct plan *, uint64_t repetition, size_t turn);
size_t plan_turns(const struct plan *);
