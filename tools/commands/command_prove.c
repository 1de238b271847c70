/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>

#include "cli/command.h"
#include "programs/launch.h"
#include "serving/reach.h"
#include "commands.h"

const struct choice command_prove_choices[] = {
    {'s', LAUNCH_SERVED, NULL, "and that the roots are served"},
    {0},
};

int command_prove(const struct command *command, int argc, char **argv)
{
    bool asks = false;
    int end = command_option(command, argc, argv);
    if (end == 's') {
        asks = true;
        end = command_option(command, argc, argv);
    }
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
    return !asks || reach_prove() ? launch_command(argv + optind) : LAUNCH_NO_SHIM;
}
