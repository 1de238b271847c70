/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "bench/plan.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"

enum { PLAN_JSON_OPTION = COMMAND_LONG + 1, PLAN_CSV_OPTION, PLAN_PLOT, PLAN_FAKES, PLAN_RANK, PLAN_LEAF_FULL };

const struct choice plan_choices[] = {
    {'n', "processes", "N", "processes on all nodes together (default: 2, at least one a node)"},
    {PLAN_FAKES, "fake-nodes", "M", "spread them over M pretended nodes of this machine"},
    {PLAN_RANK, "rank", "I/N", "this is process I, from 0 on, of N (default: as the launcher says)"},
    {'f', "files", "N", "files of each process (default: 1000)"},
    {'s', "size", "N[,N]...", "bytes of a file (default: 0)"},
    {'o', "operations", "LIST", "of create,open,stat,utime,readdir,rename,unlink (default: all)"},
    {'b', "neighbour", "LIST", "those that are done to the neighbour's files (default: none)"},
    {'c', "configurations", "LIST", "of private,shared,shunt,shunt-private (default: the first three)"},
    {'r', "repetitions", "N", "measure so many times, by turns (default: 5)"},
    {'w', "warm-up", "N", "and so many times before, unmeasured (default: 1)"},
    {'p', "placement", "auto|branch", "for the daemons (default: auto)"},
    {PLAN_LEAF_FULL, "leaf-full", "N", "for the daemons (default: by file system)"},
    {PLAN_JSON_OPTION, "json", NULL, "print one object"},
    {PLAN_CSV_OPTION, "csv", NULL, "print a line for each measurement"},
    {PLAN_PLOT, "plot", "FILE", "draw the rates, too: FILE.svg or FILE.png; may be given again"},
    {0},
};

const char *const plan_operations[PLAN_OPERATIONS] = {"create", "open", "stat", "utime", "readdir", "rename", "unlink"};
const char *const plan_configurations[PLAN_CONFIGURATIONS] = {"private", "shared", "shunt", "shunt-private"};

#define ALL_OPERATIONS ((1u << PLAN_OPERATIONS) - 1)

/* A number that may be 0. */
static int plan_take_number(const char *text, uint64_t most, uint64_t *number)
{
    if (strcmp(text, "0") != 0)
        return config_number_parse(text, most, number);
    *number = 0;
    return 0;
}

static int plan_take_one_or_more(const char *text, uint64_t most, uint64_t *number)
{
    return config_number_parse(text, most, number);
}

static int plan_take_sizes(const char *text, struct plan *plan)
{
    plan->size_count = 0;
    for (const char *end;; text = end + 1) {
        char word[32] = "";
        end = strchrnul(text, ',');
        if (end - text >= (long)sizeof word || plan->size_count == PLAN_SIZES_MAX)
            return -1;
        memcpy(word, text, (size_t)(end - text));
        if (plan_take_number(word, PLAN_SIZE_MAX, &plan->sizes[plan->size_count++]) < 0)
            return -1;
        if (!*end)
            return 0;
    }
}

static int plan_take_member(const char *word, size_t length, const char *const names[], size_t count, unsigned *set)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && !memcmp(names[i], word, length)) {
            *set |= 1u << i;
            return 0;
        }
    return -1;
}

static int plan_take_set(const char *text, const char *const names[], size_t count, unsigned *set)
{
    *set = 0;
    for (const char *end;; text = end + 1) {
        end = strchrnul(text, ',');
        if (plan_take_member(text, (size_t)(end - text), names, count, set) < 0)
            return -1;
        if (!*end)
            return 0;
    }
}

static int plan_take_operations(const char *text, unsigned *set)
{
    if (strcmp(text, "all") != 0)
        return plan_take_set(text, plan_operations, PLAN_OPERATIONS, set);
    *set = ALL_OPERATIONS;
    return 0;
}

static int plan_take_placement(const char *text, struct plan *plan)
{
    enum config_placement placement;
    plan->placement = text;
    return config_placement_parse(text, &placement);
}

static int plan_take_leaf_full(const char *text, struct plan *plan)
{
    uint64_t number;
    plan->leaf_full = text;
    return config_number_parse(text, UINT32_MAX, &number);
}

static int plan_take_plot(const char *text, struct plan *plan)
{
    const char *dot = strrchr(text, '.');
    if (!dot || (strcmp(dot, ".svg") != 0 && strcmp(dot, ".png") != 0) || plan->plot_count == PLAN_PLOTS_MAX)
        return -1;
    plan->plots[plan->plot_count++] = text;
    return 0;
}

static int plan_take_format(struct plan *plan, enum plan_format format)
{
    if (plan->format != PLAN_TEXT && plan->format != format)
        return -1;
    plan->format = format;
    return 0;
}

static int plan_take_option(struct plan *plan, int option)
{
    switch (option) {
    case 'n':
        return plan_take_one_or_more(optarg, PLAN_PROCESSES_MAX, &plan->processes);
    case 'f':
        return plan_take_one_or_more(optarg, PLAN_FILES_MAX, &plan->files);
    case 's':
        return plan_take_sizes(optarg, plan);
    case 'o':
        return plan_take_operations(optarg, &plan->operations);
    case 'b':
        return plan_take_operations(optarg, &plan->neighbour);
    case 'c':
        return plan_take_set(optarg, plan_configurations, PLAN_CONFIGURATIONS, &plan->configurations);
    case 'r':
        return plan_take_one_or_more(optarg, PLAN_REPETITIONS_MAX, &plan->repetitions);
    case 'w':
        return plan_take_number(optarg, PLAN_REPETITIONS_MAX, &plan->warm_up);
    case 'p':
        return plan_take_placement(optarg, plan);
    case PLAN_LEAF_FULL:
        return plan_take_leaf_full(optarg, plan);
    case PLAN_FAKES:
        return plan_take_one_or_more(optarg, PLAN_PROCESSES_MAX, &plan->fakes);
    case PLAN_RANK:
        return rank_parse(optarg, PLAN_PROCESSES_MAX, &plan->rank);
    case PLAN_PLOT:
        return plan_take_plot(optarg, plan);
    default:
        return plan_take_format(plan, option == PLAN_JSON_OPTION ? PLAN_JSON : PLAN_CSV);
    }
}

#define PLAN_QUOTED(number) #number
#define PLAN_TEXT(number) PLAN_QUOTED(number)

/* What a value should have been. */
static const struct {
    int option;
    const char *wanted;
} plan_wanted[] = {
    {'n', "not a number from 1 to " PLAN_TEXT(PLAN_PROCESSES_MAX)},
    {PLAN_FAKES, "not a number from 1 to " PLAN_TEXT(PLAN_PROCESSES_MAX)},
    {PLAN_RANK, "not I/N with I from 0 to N - 1 and N from 1 to " PLAN_TEXT(PLAN_PROCESSES_MAX)},
    {'f', "not a number from 1 to " PLAN_TEXT(PLAN_FILES_MAX)},
    {'s', "not numbers from 0 to 2^40 with commas between, from 1 to " PLAN_TEXT(PLAN_SIZES_MAX) " of them"},
    {'o', "not a list of create,open,stat,utime,readdir,rename,unlink, or all"},
    {'b', "not a list of create,open,stat,utime,readdir,rename,unlink, or all"},
    {'c', "not a list of private,shared,shunt,shunt-private"},
    {'r', "not a number from 1 to " PLAN_TEXT(PLAN_REPETITIONS_MAX)},
    {'w', "not a number from 0 to " PLAN_TEXT(PLAN_REPETITIONS_MAX)},
    {'p', "neither auto nor branch"},
    {PLAN_LEAF_FULL, "not a number from 1 to 4294967295"},
    {PLAN_PLOT, "not a file that ends in .svg or .png, or more than " PLAN_TEXT(PLAN_PLOTS_MAX) " of them"},
};

static int plan_complain_value(const struct command *command, int option)
{
    const struct choice *choice = command->choices;
    size_t which = 0;
    while (choice->letter != option)
        choice++;
    while (which < sizeof plan_wanted / sizeof *plan_wanted && plan_wanted[which].option != option)
        which++;
    if (which < sizeof plan_wanted / sizeof *plan_wanted)
        error_usage(command, "--%s '%s': %s", choice->name, optarg, plan_wanted[which].wanted);
    else
        error_usage(command, "--json and --csv exclude each other");
    return COMMAND_WRONG;
}

/* A launcher, or --rank, has decided how many there are. */
static int plan_settle_processes(struct plan *plan, const struct command *command)
{
    if (plan->rank.count == 0)
        rank_find(environ, PLAN_PROCESSES_MAX, &plan->rank);
    if (plan->rank.count > 1 && plan->processes > 0 && plan->processes != plan->rank.count) {
        error_usage(command, "-n: not allowed, since this is one of %u processes", plan->rank.count);
        return COMMAND_WRONG;
    }
    if (plan->rank.count > 1)
        plan->processes = plan->rank.count;
    if (plan->processes == 0)
        plan->processes = plan->fakes > 2 ? plan->fakes : 2;
    if (plan->fakes > plan->processes) {
        error_usage(command, "-n: %lu processes are too few for %lu nodes", plan->processes, plan->fakes);
        return COMMAND_WRONG;
    }
    return COMMAND_END;
}

int plan_read(struct plan *plan, const struct command *command, int argc, char **argv)
{
    int option;
    *plan = (struct plan){.files = 1000,
                          .repetitions = 5,
                          .warm_up = 1,
                          .size_count = 1,
                          .operations = ALL_OPERATIONS,
                          .configurations = 1u << PLAN_PRIVATE | 1u << PLAN_SHARED | 1u << PLAN_SHUNT};
    while ((option = command_option(command, argc, argv)) >= 0)
        if (plan_take_option(plan, option) < 0)
            return plan_complain_value(command, option);
    if (option != COMMAND_END)
        return option;
    if (!command_one_word(command, argc, "directory"))
        return COMMAND_WRONG;
    plan->directory = argv[optind];
    return plan_settle_processes(plan, command);
}

size_t plan_turns(const struct plan *plan)
{
    return (size_t)__builtin_popcount(plan->configurations);
}

unsigned plan_turn(const struct plan *plan, uint64_t repetition, size_t turn)
{
    size_t wanted = repetition % 2 ? plan_turns(plan) - 1 - turn : turn;
    unsigned configuration = 0;
    for (;; configuration++)
        if (plan_has(plan->configurations, configuration) && wanted-- == 0)
            return configuration;
}
