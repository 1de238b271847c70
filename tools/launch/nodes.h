/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The nodes that a job runs on. */

#include <stdbool.h>
#include <stddef.h>

#include "launch/line.h"

#define NODES_MAX 4096

struct nodes {
    size_t count;
    char *names[NODES_MAX]; /* each once, those of this host first */
    int groups[NODES_MAX];  /* the number of its group in a heterogeneous job of Slurm, counted from 1; 0: of none */
    int group;              /* of those that are added */
    const char *source;     /* what named them, for messages */
};

void nodes_init(struct nodes *);
void nodes_finish(struct nodes *);

/* Those of the file if one is given, else of the launch line, else of the allocation (Slurm, PBS, LSF, Grid Engine, Cobalt,
 * Flux), else this one alone. 0, or -1 after a complaint. */
int nodes_find(struct nodes *, const char *file, const struct line *);
/* `count` pretended nodes fake0, fake1 ... 0, or -1 after a complaint. */
int nodes_pretend(struct nodes *, size_t count);
/* The name of the pretended node that a rank runs on. */
#define NODES_FAKE "fake%zu"

/* Do the two names mean one host? By what is before the first dot. */
bool nodes_is_same(const char *one, const char *other);
/* This host's name as the kernel has it. */
const char *nodes_here(void);
bool nodes_is_here(const char *name);
