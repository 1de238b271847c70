/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>

#include "export.h"
#include "command.h"
#include "commands.h"

enum { EXPORT_DRY_RUN = COMMAND_LONG + 1, EXPORT_COPY, EXPORT_CAREFUL, EXPORT_JSON, EXPORT_PROGRESS };

const struct choice command_export_choices[] = {
    {EXPORT_DRY_RUN, "dry-run", NULL, "change nothing, say what would be done"},
    {EXPORT_COPY, "copy", NULL, "copy files that cannot be renamed into place, compare, remove the original"},
    {EXPORT_CAREFUL, "careful", NULL, "link and remove where the file system has no rename that replaces nothing"},
    {EXPORT_JSON, "json", NULL, "the result as an object"},
    {EXPORT_PROGRESS, "progress", NULL, "show progress although standard error is no terminal"},
    {0},
};

int command_export(const struct command *command, int argc, char **argv)
{
    struct export_options options = {0};
    int option;
    while ((option = command_option(command, argc, argv)) >= 0)
        if (option == EXPORT_DRY_RUN)
            options.dry_run = true;
        else if (option == EXPORT_COPY)
            options.copy = true;
        else if (option == EXPORT_CAREFUL)
            options.careful = true;
        else if (option == EXPORT_JSON)
            options.json = true;
        else
            options.progress = true;
    if (option != COMMAND_END)
        return command_status(option);
    if (!command_one_word(command, argc, "root"))
        return STATUS_USAGE;
    return export_root(argv[optind], &options);
}
