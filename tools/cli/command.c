/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "cli/command.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define COMMAND_CHOICES_MAX 24
#define COMMAND_NAME_MAX 40 /* of a word that may be mistyped */
#define COMMAND_TYPOS_MAX 2
#define HELP_COLUMN 22 /* of what an option is for: what is longer has a line of its own */
#define HELP_INDENT "                         "

const struct command *command_find(const struct command *table, const char *name)
{
    for (const struct command *command = table; command->name; command++)
        if (!strcmp(command->name, name))
            return command;
    return NULL;
}

/* How many letters are to be inserted, left out, replaced or exchanged with the next one, to get one word from the other; more
 * than a user mistypes where a word is too long. */
static size_t command_distance(const char *one, const char *other)
{
    size_t rows[3][COMMAND_NAME_MAX + 1], *before = rows[0], *above = rows[1], *row = rows[2];
    const size_t width = strlen(other);
    if (width > COMMAND_NAME_MAX || strlen(one) > COMMAND_NAME_MAX)
        return COMMAND_NAME_MAX;
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 1; one[i - 1] != '\0'; i++) {
        size_t *last = before;
        before = above, above = row, row = last;
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t least = above[j - 1] + (one[i - 1] != other[j - 1]);
            least = above[j] + 1 < least ? above[j] + 1 : least;
            least = row[j - 1] + 1 < least ? row[j - 1] + 1 : least;
            if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] && before[j - 2] + 1 < least)
                least = before[j - 2] + 1;
            row[j] = least;
        }
    }
    return row[width];
}

/* Is `name` nearer than what was found so far? Of a short word few letters may be wrong. */
static void command_take_nearest(const char *typed, const char *name, const char **found, size_t *distance)
{
    const size_t here = command_distance(typed, name);
    if (here >= *distance || 2 * here >= strlen(name))
        return;
    *found = name;
    *distance = here;
}

const char *command_nearest(const struct command *table, const char *name)
{
    const char *found = NULL;
    size_t distance = COMMAND_TYPOS_MAX + 1;
    for (const struct command *command = table; command->name; command++)
        if (!(command->flags & COMMAND_HIDDEN))
            command_take_nearest(name, command->name, &found, &distance);
    return found;
}

static const char *command_nearest_option(const struct command *command, const char *typed)
{
    const char *found = NULL;
    size_t distance = COMMAND_TYPOS_MAX + 1;
    const char *name = typed + strspn(typed, "-");
    for (const struct choice *choice = command->choices; choice && choice->letter; choice++)
        if (choice->name)
            command_take_nearest(name, choice->name, &found, &distance);
    return found;
}

static void command_print_choice(const struct choice *choice, const char *dashes)
{
    char left[64];
    int at = 0;
    if (choice->letter < COMMAND_LONG)
        at = snprintf(left, sizeof left, "-%c%s", choice->letter, choice->name ? ", " : "");
    if (choice->name)
        at += snprintf(left + at, sizeof left - (size_t)at, "%s%s", dashes, choice->name);
    if (choice->argument)
        at += snprintf(left + at, sizeof left - (size_t)at, " %s", choice->argument);
    printf("  %-22s%s%s\n", left, at <= HELP_COLUMN ? " " : "\n" HELP_INDENT, choice->help);
}

void command_help(const struct command *command)
{
    printf("usage: %s%s%s%s\n\n%s\n", command->flags & COMMAND_ALONE ? "" : "shunt ", command->name,
           *command->synopsis ? " " : "", command->synopsis, command->help);
    if (command->choices)
        printf("\n");
    for (const struct choice *choice = command->choices; choice && choice->letter; choice++)
        command_print_choice(choice, command->flags & COMMAND_SINGLE_DASH ? "-" : "--");
}

/* getopt's two tables, made from the subcommand's one. */
struct grammar {
    char letters[2 + 2 * COMMAND_CHOICES_MAX + 2];
    struct option options[COMMAND_CHOICES_MAX + 2];
};

static void command_make_grammar(struct grammar *grammar, const struct command *command)
{
    char *letter = grammar->letters;
    struct option *option = grammar->options;
    if (command->flags & COMMAND_COMMAND)
        *letter++ = '+';
    *letter++ = ':';
    for (const struct choice *choice = command->choices; choice && choice->letter; choice++) {
        int takes = choice->argument ? required_argument : no_argument;
        if (choice->letter < COMMAND_LONG)
            *letter++ = (char)choice->letter;
        if (choice->letter < COMMAND_LONG && takes)
            *letter++ = ':';
        if (choice->name)
            *option++ = (struct option){choice->name, takes, NULL, choice->letter};
    }
    *letter = '\0';
    *option++ = (struct option){"help", no_argument, NULL, COMMAND_LONG};
    *option = (struct option){0};
}

/* getopt tells which option it stumbled over by a letter, or for a long one only by its place. */
static int command_complain_option(const struct command *command, const char *what, char **argv)
{
    char letter[3] = {'-', (char)optopt, '\0'};
    bool is_letter = optopt > 0 && optopt < COMMAND_LONG && !(command->flags & COMMAND_SINGLE_DASH);
    const char *typed = is_letter && argv[optind - 1][1] != '-' ? letter : argv[optind - 1];
    const char *nearest = strlen(typed) > 2 && optopt == 0 ? command_nearest_option(command, typed) : NULL;
    if (nearest)
        error_usage(command, "%s '%s', did you mean '%s%s'?", what, typed, command->flags & COMMAND_SINGLE_DASH ? "-" : "--",
                    nearest);
    else
        error_usage(command, "%s '%s'", what, typed);
    return COMMAND_WRONG;
}

int command_option(const struct command *command, int argc, char **argv)
{
    struct grammar grammar;
    command_make_grammar(&grammar, command);
    opterr = 0;
    int letter = command->flags & COMMAND_SINGLE_DASH ? getopt_long_only(argc, argv, grammar.letters, grammar.options, NULL)
                                                      : getopt_long(argc, argv, grammar.letters, grammar.options, NULL);
    switch (letter) {
    case -1:
        return COMMAND_END;
    case COMMAND_LONG:
        command_help(command);
        return COMMAND_HELPED;
    case ':':
        return command_complain_option(command, "an argument is missing after", argv);
    case '?':
        return command_complain_option(command, "unknown option", argv);
    }
    return letter;
}

int command_status(int end)
{
    return end == COMMAND_WRONG ? STATUS_USAGE : STATUS_OK;
}

bool command_one_word(const struct command *command, int argc, const char *what)
{
    if (argc - optind == 1)
        return true;
    error_usage(command, "exactly one %s is required", what);
    return false;
}
