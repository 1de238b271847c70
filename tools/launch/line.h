/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The launch line that the user gave: which launcher it is, where its options end and the programs begin, and
 * the same line with the ranks under shunt. Pure, but for what the caller's callback does. */

#include <stdbool.h>
#include <stddef.h>

#include "launch/arguments.h"

enum line_kind {
    LINE_PLAIN = 0, /* no launcher: a command that runs here */
    LINE_OPENMPI,
    LINE_HYDRA, /* MPICH and its kin, Intel's among them */
    LINE_SRUN,
    LINE_FLUX,
    LINE_UNTOLD, /* mpirun or mpiexec: whose, only its --version tells */
};

#define LINE_PARTS_MAX 64

struct line_part {
    size_t begin;   /* its first option */
    size_t program; /* where the program stands */
    size_t end;     /* after its last argument: a `:`, or the end */
};

struct line {
    enum line_kind kind;
    char *const *words; /* the caller's, from the launcher on; ends with NULL */
    size_t count;
    char *const *before; /* what runs the launcher, as env or time; the caller sets them */
    size_t before_count;
    const char *exported; /* the list of variables that srun takes where none is said; NULL: ALL; likewise */
    size_t parts;
    struct line_part part[LINE_PARTS_MAX]; /* programs separated by `:` */
    const char *file;                      /* the option that names a file of programs */
    const char *preload;                   /* the user's own LD_PRELOAD for the ranks, in a word; NULL */
    size_t preload_length;
};

/* By the words alone. */
enum line_kind line_kind(char *const words[]);
/* Where the launcher stands if the words before it begin with a command that runs the command that is its argument; else 0. */
size_t line_launcher_at(char *const words[]);
/* Of mpirun or mpiexec by what its --version says; LINE_UNTOLD: neither Open MPI nor one of MPICH's kin. */
enum line_kind line_kind_of_version(const char *version);

/* 0; -ENOEXEC: there is no program; -EOPNOTSUPP: the programs are in a file, `line->file` is the option;
 * -E2BIG: more than LINE_PARTS_MAX programs. `is_program` is asked, where an option is unknown, whether the
 * word after it can be executed: then it is the program, else the option's. */
int line_parse(struct line *, enum line_kind, char *const words[], bool (*is_program)(const char *));

/* Hands over what each option of that kind (LINE_HOSTS, LINE_HOST_FILE) says in a part. How many there are, or the first answer
 * below 0. */
int line_each_value(const struct line *, const struct line_part *, unsigned what, int (*take)(void *, const char *value),
                    void *);

struct line_variable {
    const char *name, *value;
};

/* Adds the line with `wrapper` before each program and all variables handed to all ranks. Variables other
 * than LD_PRELOAD must be in the launcher's own environment, too: srun and mpirun are told their names alone.
 * What the line said of LD_PRELOAD goes. A plain line has the wrapper alone: its variables are the
 * environment's. */
void line_compose(const struct line *, const struct arguments *wrapper, const struct line_variable *, size_t count,
                  struct arguments *to);

/* The list that `srun --export` is to have instead of `list`: with all variables. False: it is too long. */
#define LINE_EXPORT_MAX 32768
bool line_export(const char *list, const struct line_variable *, size_t count, char to[LINE_EXPORT_MAX]);

/* Adds those options of the first part that say how the launcher reaches other hosts. */
void line_carry(const struct line *, struct arguments *to);
