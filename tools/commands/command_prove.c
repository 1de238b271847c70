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
        return error_usage(command, "give a command");
    if (!launch_shim_is_loaded()) {
        error_report("the dynamic loader did not load %s, so nothing would go through shunt: check that this "
                     "machine can load "
                     "it (`ldd` it) and that nothing forbids LD_PRELOAD",
                     LAUNCH_PRELOAD_NAME);
        return LAUNCH_NO_SHIM;
    }
    return launch_command(argv + optind);
}
