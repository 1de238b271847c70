/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "api/place.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "cli/shown.h"
#include "cli/stopping.h"
#include "tree/walk.h"
#include "commands.h"

enum { NAMES_JSON = COMMAND_LONG + 1 };

const struct choice command_names_choices[] = {
    {'0', "null", NULL, "end each path with a zero byte, for xargs -0"},
    {NAMES_JSON, "json", NULL, "an object a line: path, type, inode and where it lies"},
    {0},
};

struct names {
    bool in_json, ends_in_zero;
    int status;
};

/* Nobody reads on, or a signal came. */
static bool command_names_ends(void)
{
    return stopping() || ferror(stdout);
}

static void command_names_fail(struct names *names, const char *path, int error)
{
    error_report_path(path, error);
    names->status = STATUS_FAILED;
}

static int command_names_print(const struct names *names, const struct walk *walk, const struct union_name *name)
{
    char path[PATH_MAX];
    int error = folder_path(&walk->folder, name->name, path, sizeof path);
    if (error < 0)
        return error;
    if (names->in_json)
        return describe_json_name(&walk->folder, walk->root, name, path);
    if (names->ends_in_zero)
        fputs(path, stdout);
    else
        describe_print(path);
    putchar(names->ends_in_zero ? '\0' : '\n');
    return 0;
}

static void command_names_print_folder(struct names *names, const struct walk *walk, const char *shown)
{
    const struct listing *listing = &walk->folder.listing;
    char path[2 * PATH_MAX];
    for (size_t i = 0; i < listing->count && !command_names_ends(); i++) {
        int error = command_names_print(names, walk, &listing->names[i]);
        if (error < 0 && visible_path_join(shown, listing->names[i].name, path, sizeof path) == 0)
            command_names_fail(names, path, error);
    }
    if (listing->trunk_unlisted)
        command_names_fail(names, shown, -EACCES);
}

static void command_names_walk(struct names *names, struct union_root *root, const char *spelling)
{
    struct walk walk;
    char shown[2 * PATH_MAX];
    int more = walk_init(&walk, root, ".", WALK_AHEAD);
    if (more < 0)
        command_names_fail(names, spelling, more);
    for (; more == 0 && !command_names_ends() && (more = walk_next(&walk)) != 0; more = 0) {
        int error = visible_path_below(spelling, ".", walk.folder.path, shown, sizeof shown);
        if (more < 0 || error < 0)
            command_names_fail(names, error < 0 ? spelling : shown, more < 0 ? more : error);
        else
            command_names_print_folder(names, &walk, shown);
    }
    walk_finish(&walk);
}

static int command_names_find_root(struct place *place, const char *path)
{
    int error = place_find(place, path, PLACE_FOLLOW | PLACE_ENTER);
    if (error == 0 && place->found)
        error = -ENOTDIR;
    if (error < 0) {
        error_report_path(path, error);
        return STATUS_FAILED;
    }
    if (!strcmp(place->folder.path, "."))
        return STATUS_OK;
    error_report("%s: a part of the root %s (run 'shunt names %s', or 'shunt find %s')", path, place->root.path,
                 place->root.path, path);
    return STATUS_FAILED;
}

static int command_names_of(struct names *names, const char *path)
{
    struct place place;
    place_init(&place);
    names->status = command_names_find_root(&place, path);
    if (names->status == STATUS_OK) {
        stopping_catch();
        command_names_walk(names, &place.root, path);
        int signal = stopping();
        stopping_release();
        if (signal) {
            error_report("%s: the list was interrupted and is not complete (run this again)", path);
            names->status = 128 + signal;
        }
    }
    place_finish(&place);
    return names->status;
}

int command_names(const struct command *command, int argc, char **argv)
{
    struct names names = {.status = STATUS_OK};
    int option;
    while ((option = command_option(command, argc, argv)) >= 0)
        if (option == NAMES_JSON)
            names.in_json = true;
        else
            names.ends_in_zero = true;
    if (option != COMMAND_END)
        return command_status(option);
    if (names.in_json && names.ends_in_zero)
        return error_usage(command, "--null and --json exclude each other");
    return command_one_word(command, argc, "root") ? command_names_of(&names, argv[optind]) : STATUS_USAGE;
}
