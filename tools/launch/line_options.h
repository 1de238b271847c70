/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The options of launchers, as far as a launch line must be understood. */

#include <stdbool.h>
#include <stddef.h>

/* What an option is to us. */
enum {
    LINE_CARRY = 1, /* how hosts are reached */
    LINE_HOSTS = 2,
    LINE_HOST_FILE = 4,
    LINE_VARIABLE = 8,  /* NAME, NAME=VALUE, or NAME VALUE: sets a variable */
    LINE_EXPORT = 16,   /* a list of them */
    LINE_PROGRAMS = 32, /* a file that has the programs */
};

struct line_option {
    const char *name;
    unsigned takes; /* words */
    unsigned what;
};

/* What the launchers have not in common, by enum line_kind. */
struct line_launcher {
    const struct line_option *options; /* end with a name of NULL */
    size_t first;                      /* words before the options */
    bool letters;                      /* a letter's word may be attached to it */
    bool parts;                        /* `:` begins another program */
    bool each;                         /* variables are said for each program again */
};

extern const struct line_launcher line_launchers[];
