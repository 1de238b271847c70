/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The table of verbs, and what every verb says in the same way: its options, its help, its complaints. */

#include <stdbool.h>
#include <stddef.h>

struct choice {
    int letter;           /* 'l' for -l; above VERB_LONG for an option without a letter */
    const char *name;     /* --name; NULL without one */
    const char *argument; /* what it takes, as help shows it; NULL: nothing */
    const char *help;
};

#define VERB_LONG 256

enum {
    VERB_COMMAND = 1,     /* options end at the first word that is none: what follows is a command */
    VERB_SINGLE_DASH = 2, /* long options are written with one dash, as those of find */
    VERB_HIDDEN = 4,
    VERB_ALONE = 8, /* a command by itself: not `shunt NAME` */
};

struct verb {
    const char *name, *synopsis, *help;
    const struct choice *choices; /* ends with a letter of 0; NULL: none */
    unsigned flags;
    int (*run)(const struct verb *, int argc, char **argv); /* argv[0] is the verb; the exit status */
};

extern const struct verb verbs[]; /* ends with a name of NULL */
const struct verb *verb_find(const char *name);
void verb_help(const struct verb *);

/* Exit statuses that all verbs share. */
enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

/* The next option's letter, with its argument in getopt's optarg; VERB_END when there are no more and optind
 * stands at the first word that is none; VERB_HELPED when help was asked for and given, VERB_WRONG after a
 * complaint. Then the verb is over, with verb_status of it. */
enum { VERB_END = -1, VERB_HELPED = -2, VERB_WRONG = -3 };
int verb_option(const struct verb *, int argc, char **argv);
int verb_status(int end);

/* `shunt: ` and one sentence on standard error; another command says its own name first. */
extern const char *complain_as;
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* ... of a path and a negative errno, with what to do. */
void complain_of(const char *path, int error);
/* ... and what `shunt VERB --help` is for; STATUS_USAGE. */
int complain_usage(const struct verb *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* ... that a verb takes exactly one word, if there is not exactly one: false. */
bool verb_one_word(const struct verb *, int argc, const char *what);
