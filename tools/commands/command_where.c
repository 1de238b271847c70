/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>
#include <stdio.h>

#include "api/place.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "commands.h"

static int command_where_print_one(struct place *place, const char *path)
{
    char where[PATH_MAX];
    int error = place_find(place, path, 0);
    if (error == 0)
        error = folder_where(&place->folder, &place->root, place->found, where, sizeof where);
    if (error < 0) {
        error_report_path(path, error);
        return STATUS_FAILED;
    }
    describe_print(where);
    putchar('\n');
    return STATUS_OK;
}

int command_where(const struct command *command, int argc, char **argv)
{
    int end = command_option(command, argc, argv);
    if (end != COMMAND_END)
        return command_status(end);
    if (optind == argc)
        return error_usage(command, "no path is given");
    struct place place;
    int status = STATUS_OK;
    place_init(&place);
    for (int i = optind; i < argc; i++)
        status |= command_where_print_one(&place, argv[i]);
    place_finish(&place);
    return status;
}
