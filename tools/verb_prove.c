/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"
#include "verb.h"
#include "verbs.h"

#define PRELOAD_NAME "libshunt_preload.so"

static bool shim_is_loaded(void)
{
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return false;
    while (!found && getline(&line, &size, maps) > 0)
        found = strstr(line, "/" PRELOAD_NAME) != NULL;
    free(line);
    fclose(maps);
    return found;
}

static int complain_command(const char *command, int error)
{
    bool missing = error == ENOENT || error == ENOTDIR;
    complain(missing ? "%s: command not found (%s): check its spelling and PATH"
                     : "%s: cannot be executed (%s): check what it is and its permissions",
             command, strerror(error));
    return missing ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
}

int verb_prove(const struct verb *verb, int argc, char **argv)
{
    int end = verb_option(verb, argc, argv);
    if (end != VERB_END)
        return verb_status(end);
    if (optind == argc)
        return complain_usage(verb, "give a command");
    if (!shim_is_loaded()) {
        complain("the dynamic loader did not load %s, so nothing would go through shunt: check that this "
                 "machine can load "
                 "it (`ldd` it) and that nothing forbids LD_PRELOAD",
                 PRELOAD_NAME);
        return LAUNCH_NO_SHIM;
    }
    execvp(argv[optind], argv + optind);
    return complain_command(argv[optind], errno);
}
