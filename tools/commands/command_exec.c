/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>

#include "daemon.h"
#include "launch.h"
#include "reach.h"
#include "command.h"
#include "commands.h"
#include "site.h"

const struct choice command_exec_choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again (default: SHUNT_ROOT)"},
    {'n', "node", "NAME", "what this node is called (default: the name of its daemon)"},
    {0},
};

int command_exec(const struct command *command, int argc, char **argv)
{
    struct roots roots;
    struct daemon_options options = {0};
    const char *node = NULL;
    int end, wrong = 0;
    roots_init(&roots);
    while (wrong == 0 && (end = command_option(command, argc, argv)) >= 0)
        if (end == 'r')
            wrong = roots_add(&roots, optarg);
        else
            node = optarg;
    int status = wrong ? STATUS_USAGE : command_status(end);
    if (!wrong && end == COMMAND_END && optind == argc)
        status = error_usage(command, "no command is given");
    else if (!wrong && end == COMMAND_END && roots_default(&roots) < 0)
        status = STATUS_USAGE;
    else if (!wrong && end == COMMAND_END && site_is_off() && !site_is_served(&roots))
        status = site_command(&roots, argv + optind);
    else if (!wrong && end == COMMAND_END && (status = reach_node(&roots, &options, node)) == 0)
        status = launch_exec(&roots, options.node, argv + optind, true);
    roots_finish(&roots);
    return status;
}
