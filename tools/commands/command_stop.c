/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>

#include "cli/command.h"
#include "launch/helpers.h"
#include "leaving/export.h"
#include "serving/daemon.h"
#include "commands.h"

enum { STOP_EXPORT = COMMAND_LONG + 1, STOP_HOSTS };

const struct choice command_stop_choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again (default: SHUNT_ROOT)"},
    {'n', "node", "NAME", "only the daemon that goes by that name (default: all of this host)"},
    {'a', "all", NULL, "the daemons of the session on all hosts, wherever they run"},
    {STOP_EXPORT, "export", NULL, "then make the roots that nobody serves any more plain directories again"},
    {STOP_HOSTS, "hosts", "FILE", "with --export: nodes that rename what they made, as of export"},
    {0},
};

struct stop {
    struct roots roots;
    const char *node, *hosts;
    bool all, exports;
};

/* COMMAND_END, COMMAND_HELPED or COMMAND_WRONG. */
static int command_stop_read(struct stop *stop, const struct command *command, int argc, char **argv)
{
    int end;
    while ((end = command_option(command, argc, argv)) >= 0)
        if (end == 'n')
            stop->node = optarg;
        else if (end == 'a')
            stop->all = true;
        else if (end == STOP_EXPORT)
            stop->exports = true;
        else if (end == STOP_HOSTS)
            stop->hosts = optarg;
        else if (roots_add(&stop->roots, optarg) < 0)
            return COMMAND_WRONG;
    return end;
}

/* A root that daemons of other nodes serve is left to the one that stops last. */
static int command_stop_export_all(const struct roots *roots, const struct helpers *helpers)
{
    int status = STATUS_OK;
    for (size_t i = 0; i < roots->count; i++) {
        const struct export_options options = {.yields = true, .owners = helpers_owners(helpers, roots->paths[i])};
        const int answer = export_root(roots->paths[i], &options);
        status = answer > status ? answer : status;
    }
    return status;
}

static int command_stop_export(const struct stop *stop)
{
    static struct helpers helpers;
    const int begun = helpers_begin(&helpers, stop->roots.paths, stop->roots.count, stop->hosts);
    int status = begun < 0 ? STATUS_FAILED : 128 + begun;
    if (begun == 0)
        status = command_stop_export_all(&stop->roots, &helpers);
    helpers_end(&helpers);
    return status;
}

static int command_stop_do(struct stop *stop)
{
    if ((stop->all ? daemon_stop_everywhere(&stop->roots) : daemon_stop_served(&stop->roots, stop->node)) < 0)
        return STATUS_FAILED;
    return stop->exports ? command_stop_export(stop) : STATUS_OK;
}

int command_stop(const struct command *command, int argc, char **argv)
{
    struct stop stop = {0};
    roots_init(&stop.roots);
    const int end = command_stop_read(&stop, command, argc, argv);
    int status;
    if (end != COMMAND_END)
        status = command_status(end);
    else if (optind < argc)
        status = error_usage(command, "unexpected argument '%s', roots are given with --root", argv[optind]);
    else if (roots_default(&stop.roots) < 0)
        status = STATUS_USAGE;
    else if (stop.all && stop.node != NULL)
        status = error_usage(command, "--all and --node exclude each other");
    else if (stop.hosts != NULL && !stop.exports)
        status = error_usage(command, "--hosts goes with --export alone");
    else
        status = command_stop_do(&stop);
    roots_finish(&stop.roots);
    return status;
}
