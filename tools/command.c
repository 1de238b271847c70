/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "command.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define VERB_CHOICES_MAX 24
#define HELP_COLUMN 22 /* of what an option is for: what is longer has a line of its own */
#define HELP_INDENT "                         "

const struct verb *verb_find(const char *name)
{
    for (const struct verb *verb = verbs; verb->name; verb++)
        if (!strcmp(verb->name, name))
            return verb;
    return NULL;
}

static void print_choice(const struct choice *choice, const char *dashes)
{
    char left[64];
    int at = 0;
    if (choice->letter < VERB_LONG)
        at = snprintf(left, sizeof left, "-%c%s", choice->letter, choice->name ? ", " : "");
    if (choice->name)
        at += snprintf(left + at, sizeof left - (size_t)at, "%s%s", dashes, choice->name);
    if (choice->argument)
        at += snprintf(left + at, sizeof left - (size_t)at, " %s", choice->argument);
    printf("  %-22s%s%s\n", left, at <= HELP_COLUMN ? " " : "\n" HELP_INDENT, choice->help);
}

void verb_help(const struct verb *verb)
{
    printf("usage: %s%s%s%s\n\n%s\n", verb->flags & VERB_ALONE ? "" : "shunt ", verb->name, *verb->synopsis ? " " : "",
           verb->synopsis, verb->help);
    if (verb->choices)
        printf("\n");
    for (const struct choice *choice = verb->choices; choice && choice->letter; choice++)
        print_choice(choice, verb->flags & VERB_SINGLE_DASH ? "-" : "--");
}

/* getopt's two tables, made from the verb's one. */
struct grammar {
    char letters[2 + 2 * VERB_CHOICES_MAX + 2];
    struct option options[VERB_CHOICES_MAX + 2];
};

static void make_grammar(struct grammar *grammar, const struct verb *verb)
{
    char *letter = grammar->letters;
    struct option *option = grammar->options;
    if (verb->flags & VERB_COMMAND)
        *letter++ = '+';
    *letter++ = ':';
    for (const struct choice *choice = verb->choices; choice && choice->letter; choice++) {
        int takes = choice->argument ? required_argument : no_argument;
        if (choice->letter < VERB_LONG)
            *letter++ = (char)choice->letter;
        if (choice->letter < VERB_LONG && takes)
            *letter++ = ':';
        if (choice->name)
            *option++ = (struct option){choice->name, takes, NULL, choice->letter};
    }
    *letter = '\0';
    *option++ = (struct option){"help", no_argument, NULL, VERB_LONG};
    *option = (struct option){0};
}

/* getopt tells which option it stumbled over by a letter, or for a long one only by its place. */
static int complain_option(const struct verb *verb, const char *what, char **argv)
{
    char letter[3] = {'-', (char)optopt, '\0'};
    bool is_letter = optopt > 0 && optopt < VERB_LONG && !(verb->flags & VERB_SINGLE_DASH);
    complain_usage(verb, "%s '%s'", what, is_letter && argv[optind - 1][1] != '-' ? letter : argv[optind - 1]);
    return VERB_WRONG;
}

int verb_option(const struct verb *verb, int argc, char **argv)
{
    struct grammar grammar;
    make_grammar(&grammar, verb);
    opterr = 0;
    int letter = verb->flags & VERB_SINGLE_DASH ? getopt_long_only(argc, argv, grammar.letters, grammar.options, NULL)
                                                : getopt_long(argc, argv, grammar.letters, grammar.options, NULL);
    switch (letter) {
    case -1:
        return VERB_END;
    case VERB_LONG:
        verb_help(verb);
        return VERB_HELPED;
    case ':':
        return complain_option(verb, "an argument is missing after", argv);
    case '?':
        return complain_option(verb, "unknown option", argv);
    }
    return letter;
}

int verb_status(int end)
{
    return end == VERB_WRONG ? STATUS_USAGE : STATUS_OK;
}

bool verb_one_word(const struct verb *verb, int argc, const char *what)
{
    if (argc - optind == 1)
        return true;
    complain_usage(verb, "give exactly one %s", what);
    return false;
}
