/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>

#include "launch.h"
#include "command.h"
#include "commands.h"

int command_prove(const struct command *command, int argc, char **argv)
{
    int end = command_option(command, argc, argv);
    if (end != COMMAND_END)
        return command_status(end);
    if (optind == argc)
        return error_usage(command, "no command is given");
    if (!launch_shim_is_loaded()) {
        error_report("%s: not loaded by the dynamic loader, so nothing would go through shunt (check it with 'ldd', and that "
                     "nothing removes LD_PRELOAD)",
                     LAUNCH_PRELOAD_NAME);
        return LAUNCH_NO_SHIM;
    }
    return launch_command(argv + optind);
}
