/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A program of shunt that the plugin runs. It is told in words and in an environment, and has no descriptor of Slurm's but the
 * standard ones. */

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#define TOOL_WORDS 80
#define TOOL_ROOTS 16 /* in one list */

struct tool {
    char path[PATH_MAX];
    char *words[TOOL_WORDS + 1]; /* own copies; the last is NULL */
    size_t count;
    char **environment; /* own, of strings of others, but for the last */
    char node[80];      /* SHUNT_NODE=... */
};

/* A list of roots, with colons between: NULL if it is well formed, or else what is wrong with it. */
const char *tool_complain_roots(const char *list);

/* When to export, in the words of shunt-launch: NULL if it knows them, or else what is wrong. */
#define TOOL_EXPORT_WORDS "now, background, background,SECONDS, later, later,submit or never"
const char *tool_complain_export(const char *when);

/* `bin`/`name` with a first word, in that environment, to which node is added if it is not NULL. Without the preload library of
 * a session around it, whose daemons may be on another node; `preloads`: with it. 0, or -1: no memory, or a path that is too
 * long. */
int tool_init(struct tool *, const char *bin, const char *name, char *const *environment, const char *node, int preloads);
void tool_finish(struct tool *);
int tool_add(struct tool *, const char *word);
/* --root DIR for each of a list. */
int tool_add_roots(struct tool *, const char *list);
/* --export WHEN. */
int tool_add_export(struct tool *, const char *when);

/* In a child: executes it; returns if it cannot be executed. `output`: its standard output, and input if `both`; or -1. */
void tool_become(const struct tool *, int output, int both);
/* Runs it to its end. Its exit status, or -1. */
int tool_run(const struct tool *);
/* Runs it to its end, and hands on each string of its output, which ends with a NUL. Its exit status, or -1. */
int tool_read(const struct tool *, void (*take)(void *, const char *), void *);
