/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>

#include "api/place.h"
#include "describe.h"
#include "shown.h"
#include "command.h"
#include "commands.h"
#include "walk.h"

enum { FIND_NAME = COMMAND_LONG + 1, FIND_TYPE, FIND_BRANCH, FIND_TRUNK, FIND_PRINT0 };

const struct choice command_find_choices[] = {
    {FIND_NAME, "name", "GLOB", "only names that this pattern matches"},
    {FIND_TYPE, "type", "f|d|l|p|s", "only files, directories, links, FIFOs or sockets"},
    {FIND_BRANCH, "branch", "NAME", "only what lies in this branch, or in any of this node"},
    {FIND_TRUNK, "trunk", NULL, "only what lies in the trunk"},
    {FIND_PRINT0, "print0", NULL, "end each path with a zero byte, for xargs -0"},
    {0},
};

struct wanted {
    const char *name, *branch;
    uint8_t type; /* 0: any */
    bool trunk;
    char end;
};

static bool command_find_branch_matches(const char *branch, const char *wanted)
{
    uint32_t incarnation;
    size_t node = layout_branch_node(branch, strlen(branch), &incarnation);
    return !strcmp(branch, wanted) || (strlen(wanted) == node && !strncmp(branch, wanted, node));
}

static bool command_find_matches(const struct wanted *wanted, const struct union_root *root, const char *name, uint8_t type,
                                 const struct union_name *entry)
{
    const char *branch = describe_branch(root, entry);
    if (wanted->type != 0 && type != wanted->type)
        return false;
    if (branch ? wanted->trunk : wanted->branch != NULL)
        return false;
    if (wanted->branch && !command_find_branch_matches(branch, wanted->branch))
        return false;
    return !wanted->name || fnmatch(wanted->name, name, 0) == 0;
}

static void command_find_print(const struct wanted *wanted, const char *path)
{
    if (wanted->end == '\0')
        fputs(path, stdout);
    else
        describe_print(path);
    putchar(wanted->end);
}

static void command_find_print_folder(const struct wanted *wanted, const struct walk *walk, const char *shown)
{
    char path[2 * PATH_MAX];
    const struct listing *listing = &walk->folder.listing;
    for (size_t i = 0; i < listing->count; i++) {
        const struct union_name *name = &listing->names[i];
        if (name->type != DT_DIR && command_find_matches(wanted, walk->root, name->name, name->type, name) &&
            visible_path_join(shown, name->name, path, sizeof path) == 0)
            command_find_print(wanted, path);
    }
}

static const char *command_find_last_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int command_find_below(const struct wanted *wanted, const struct place *place, const char *spelling)
{
    struct walk walk;
    char shown[2 * PATH_MAX];
    int status = STATUS_OK, more = walk_init(&walk, &place->root, place->folder.path, 0);
    if (more < 0)
        error_report_path(spelling, more);
    for (; more == 0 && (more = walk_next(&walk)) != 0; more = 0) {
        int error = visible_path_below(spelling, place->folder.path, walk.folder.path, shown, sizeof shown);
        if (error == 0 && command_find_matches(wanted, walk.root, command_find_last_of(shown), DT_DIR, NULL))
            command_find_print(wanted, shown);
        if (more < 0 || error < 0) {
            error_report_path(shown, more < 0 ? more : error);
            status = STATUS_FAILED;
        } else {
            command_find_print_folder(wanted, &walk, shown);
        }
    }
    walk_finish(&walk);
    return more < 0 ? STATUS_FAILED : status;
}

static int command_find_one(const struct wanted *wanted, struct place *place, const char *path)
{
    int error = place_find(place, path, PLACE_ENTER);
    if (error < 0) {
        error_report_path(path, error);
        return STATUS_FAILED;
    }
    if (!place->found)
        return command_find_below(wanted, place, path);
    if (command_find_matches(wanted, &place->root, place->found->name, place->found->type, place->found))
        command_find_print(wanted, path);
    return STATUS_OK;
}

static int command_find_take_type(const struct command *command, struct wanted *wanted)
{
    static const struct {
        char letter;
        uint8_t type;
    } types[] = {{'f', DT_REG}, {'d', DT_DIR}, {'l', DT_LNK}, {'p', DT_FIFO}, {'s', DT_SOCK}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (optarg[0] == types[i].letter && optarg[1] == '\0') {
            wanted->type = types[i].type;
            return 0;
        }
    error_usage(command, "-type '%s': not one of f, d, l, p and s", optarg);
    return COMMAND_WRONG;
}

static int command_find_take_options(struct wanted *wanted, const struct command *command, int argc, char **argv)
{
    int option, wrong = 0;
    while (wrong == 0 && (option = command_option(command, argc, argv)) >= 0)
        switch (option) {
        case FIND_NAME:
            wanted->name = optarg;
            break;
        case FIND_TYPE:
            wrong = command_find_take_type(command, wanted);
            break;
        case FIND_BRANCH:
            wanted->branch = optarg;
            break;
        case FIND_TRUNK:
            wanted->trunk = true;
            break;
        default:
            wanted->end = '\0';
        }
    return wrong ? wrong : option;
}

int command_find_files(const struct command *command, int argc, char **argv)
{
    struct wanted wanted = {.end = '\n'};
    int end = command_find_take_options(&wanted, command, argc, argv);
    if (end != COMMAND_END)
        return command_status(end);
    if (wanted.branch && wanted.trunk)
        return error_usage(command, "-branch and -trunk exclude each other");
    static char *here[] = {".", NULL};
    struct place place;
    int status = STATUS_OK;
    place_init(&place);
    for (char **path = optind < argc ? argv + optind : here; *path; path++)
        status |= command_find_one(&wanted, &place, *path);
    place_finish(&place);
    return status;
}
