/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The table of subcommands, and what every subcommand says in the same way: its options, its help, its complaints. */

#include <stdbool.h>
#include <stddef.h>

struct choice {
    int letter;           /* 'l' for -l; above COMMAND_LONG for an option without a letter */
    const char *name;     /* --name; NULL without one */
    const char *argument; /* what it takes, as help shows it; NULL: nothing */
    const char *help;
};

#define COMMAND_LONG 256

enum {
    COMMAND_COMMAND = 1,     /* options end at the first word that is none: what follows is a command */
    COMMAND_SINGLE_DASH = 2, /* long options are written with one dash, as those of find */
    COMMAND_HIDDEN = 4,
    COMMAND_ALONE = 8, /* a command by itself: not `shunt NAME` */
};

struct command {
    const char *name, *synopsis, *help;
    const struct choice *choices; /* ends with a letter of 0; NULL: none */
    unsigned flags;
    int (*run)(const struct command *, int argc, char **argv); /* argv[0] is the subcommand; the exit status */
};

/* The one of that name in a table that ends with a name of NULL, or NULL. */
const struct command *command_find(const struct command *table, const char *name);
void command_help(const struct command *);
/* The one of such a table that was probably meant, or NULL. */
const char *command_nearest(const struct command *table, const char *name);

/* Exit statuses that all subcommands share. */
enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

/* The next option's letter, with its argument in getopt's optarg; COMMAND_END when there are no more and optind
 * stands at the first word that is none; COMMAND_HELPED when help was asked for and given, COMMAND_WRONG after a
 * complaint. Then the subcommand is over, with command_status of it. */
enum { COMMAND_END = -1, COMMAND_HELPED = -2, COMMAND_WRONG = -3 };
int command_option(const struct command *, int argc, char **argv);
int command_status(int end);

/* `shunt: ` and one sentence on standard error; another command says its own name first. */
extern const char *error_program;
void error_report(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* For a process that serves a job: that what reads its messages has ended (SIGPIPE) is no reason to leave a session. What it
 * executes has the signal as it was. */
void error_outlast_reader(void);
/* What a message calls the file of that path: '' if it is empty. */
const char *error_name(const char *path);
/* What a negative errno of a path means, and what to do. */
const char *error_words(int error);
/* ... of a path and a negative errno, with what to do. */
void error_report_path(const char *path, int error);
/* ... and what `shunt SUBCOMMAND --help` is for; STATUS_USAGE. */
int error_usage(const struct command *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* ... that a subcommand takes exactly one word, if there is not exactly one: false. */
bool command_one_word(const struct command *, int argc, const char *what);
