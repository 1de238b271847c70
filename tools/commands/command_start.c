/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>

#include "cli/command.h"
#include "cli/stopping.h"
#include "programs/site.h"
#include "serving/daemon.h"
#include "serving/kept.h"
#include "serving/share.h"
#include "serving/step.h"
#include "commands.h"

enum { START_TAKEOVER_OPTION = COMMAND_LONG + 1 };

const struct choice command_start_choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again (default: SHUNT_ROOT)"},
    {'n', "node", "NAME", "what this node is called (default: SHUNT_NODE, or Slurm's or the host's name)"},
    {'p', "placement", "auto|branch", "redirect files when it pays, or always (default: auto)"},
    {'f', "leaf-full", "N", "files in one leaf directory (default: by file system)"},
    {START_TAKEOVER_OPTION, "takeover", NULL, "take over from hosts that are silent, without asking the batch system"},
    {0},
};

static int command_start_start(const struct roots *roots, struct daemon_options *options, const char *node)
{
    if (site_is_off()) /* a script that begins so goes on: `exec` runs its commands */
        return site_do_without(roots, "no daemon is started") < 0 ? STATUS_FAILED : STATUS_OK;
    if (daemon_node(options, node) < 0)
        return STATUS_USAGE;
    const bool stays = step_is_mine();
    stopping_catch();
    for (size_t i = 0; i < roots->count; i++)
        share_forget(roots->paths[i], options->node);
    if (stays)
        kept_adopt();
    if (daemon_start(roots, options) == 0) /* a signal comes too late: one that ended this process now would say that nothing is
                                              served */
        return stays ? step_stay(roots, options->node) : STATUS_OK;
    int signal = stopping_release();
    return signal != 0 ? 128 + signal : STATUS_FAILED;
}

static int command_start_take_options(const struct command *command, int argc, char **argv, struct roots *roots,
                                      struct daemon_options *options, const char **node)
{
    int option;
    while ((option = command_option(command, argc, argv)) >= 0)
        switch (option) {
        case 'r':
            if (roots_add(roots, optarg) < 0)
                return COMMAND_WRONG;
            break;
        case 'n':
            *node = optarg;
            break;
        case 'p':
            if (daemon_take_placement(command, optarg, &options->placement) < 0)
                return COMMAND_WRONG;
            break;
        case START_TAKEOVER_OPTION:
            options->takeover = true;
            break;
        default:
            if (daemon_take_leaf_full(command, optarg, &options->leaf_full) < 0)
                return COMMAND_WRONG;
        }
    return option;
}

int command_start(const struct command *command, int argc, char **argv)
{
    struct roots roots;
    struct daemon_options options = {0};
    const char *node = NULL;
    roots_init(&roots);
    int end = command_start_take_options(command, argc, argv, &roots, &options, &node);
    int status = command_status(end);
    if (end == COMMAND_END && optind < argc)
        status = error_usage(command, "unexpected argument '%s', roots are given with --root", argv[optind]);
    else if (end == COMMAND_END)
        status = roots_default(&roots) < 0 ? STATUS_USAGE : command_start_start(&roots, &options, node);
    roots_finish(&roots);
    return status;
}
