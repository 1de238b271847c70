/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The roots a subcommand works on: every --root, or else $SHUNT_ROOT. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define ROOTS_MAX 64

struct roots {
    size_t count;
    char *paths[ROOTS_MAX]; /* canonical */
};

void roots_init(struct roots *);
void roots_finish(struct roots *);
/* One --root: 0, or -1 after a complaint. The same root twice is one. */
int roots_add(struct roots *, const char *path);
/* If there was no --root, takes those of $SHUNT_ROOT. 0, or -1 after a complaint: none at all, or a bad one.
 */
int roots_default(struct roots *);
/* Adds those of $SHUNT_ROOT that are there, and complains of none. */
void roots_served(struct roots *);
bool roots_has(const struct roots *, const char *canonical);
/* Joined with `:`, to be freed; NULL: no memory. */
char *roots_join(const struct roots *);
