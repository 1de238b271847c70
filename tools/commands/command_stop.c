/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>

#include "daemon.h"
#include "command.h"
#include "commands.h"

const struct choice command_stop_choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again (default: SHUNT_ROOT)"},
    {'n', "node", "NAME", "only the daemon that goes by that name (default: all of this host)"},
    {'a', "all", NULL, "the daemons of the session on all hosts, wherever they run"},
    {0},
};

int command_stop(const struct command *command, int argc, char **argv)
{
    const char *node = NULL;
    bool all = false;
    struct roots roots;
    int end, wrong = 0;
    roots_init(&roots);
    while (wrong == 0 && (end = command_option(command, argc, argv)) >= 0)
        if (end == 'n')
            node = optarg;
        else if (end == 'a')
            all = true;
        else
            wrong = roots_add(&roots, optarg);
    int status = wrong ? STATUS_USAGE : command_status(end);
    if (!wrong && end == COMMAND_END && optind < argc)
        status = error_usage(command, "unexpected argument '%s', roots are given with --root", argv[optind]);
    else if (!wrong && end == COMMAND_END && roots_default(&roots) < 0)
        status = STATUS_USAGE;
    else if (!wrong && end == COMMAND_END && all && node != NULL)
        status = error_usage(command, "--all and --node exclude each other");
    else if (!wrong && end == COMMAND_END && (all ? daemon_stop_everywhere(&roots) : daemon_stop_served(&roots, node)) < 0)
        status = STATUS_FAILED;
    roots_finish(&roots);
    return status;
}
