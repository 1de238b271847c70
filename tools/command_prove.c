/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>

#include "launch.h"
#include "command.h"
#include "commands.h"

int verb_prove(const struct verb *verb, int argc, char **argv)
{
    int end = verb_option(verb, argc, argv);
    if (end != VERB_END)
        return verb_status(end);
    if (optind == argc)
        return complain_usage(verb, "give a command");
    if (!launch_shim_is_loaded()) {
        complain("the dynamic loader did not load %s, so nothing would go through shunt: check that this "
                 "machine can load "
                 "it (`ldd` it) and that nothing forbids LD_PRELOAD",
                 LAUNCH_PRELOAD_NAME);
        return LAUNCH_NO_SHIM;
    }
    return launch_command(argv + optind);
}
