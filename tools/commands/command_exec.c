/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>

#include "cli/command.h"
#include "config/config.h"
#include "programs/launch.h"
#include "programs/site.h"
#include "serving/daemon.h"
#include "serving/reach.h"
#include "commands.h"

const struct choice command_exec_choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again (default: SHUNT_ROOT)"},
    {'n', "node", "NAME", "what this node is called (default: the name of its daemon)"},
    {'w', "wait", "SECONDS", "wait so long for daemons of this host (default: not at all)"},
    {0},
};

static int command_exec_take_wait(const struct command *command, uint64_t *seconds)
{
    if (config_number_parse(optarg, 86400, seconds) == 0)
        return 0;
    error_usage(command, "--wait '%s': not a number from 1 to 86400", optarg);
    return COMMAND_WRONG;
}

int command_exec(const struct command *command, int argc, char **argv)
{
    struct roots roots;
    struct daemon_options options = {0};
    const char *node = NULL;
    uint64_t seconds = 0;
    int end, wrong = 0;
    roots_init(&roots);
    while (wrong == 0 && (end = command_option(command, argc, argv)) >= 0)
        if (end == 'r')
            wrong = roots_add(&roots, optarg);
        else if (end == 'w')
            wrong = command_exec_take_wait(command, &seconds);
        else
            node = optarg;
    int status = wrong ? STATUS_USAGE : command_status(end);
    if (!wrong && end == COMMAND_END && optind == argc)
        status = error_usage(command, "no command is given");
    else if (!wrong && end == COMMAND_END && roots_default(&roots) < 0)
        status = STATUS_USAGE;
    else if (!wrong && end == COMMAND_END && site_is_off() && !site_is_served(&roots))
        status = site_command(&roots, argv + optind);
    else if (!wrong && end == COMMAND_END && site_check_variables() < 0)
        status = LAUNCH_NO_SHIM;
    else if (!wrong && end == COMMAND_END && (status = reach_node_within(&roots, &options, node, seconds)) == 0)
        status = launch_exec(&roots, options.node, argv + optind, true);
    roots_finish(&roots);
    return status;
}
