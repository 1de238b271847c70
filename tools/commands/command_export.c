/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>

#include "base/clock.h"
#include "cli/command.h"
#include "config/config.h"
#include "launch/helpers.h"
#include "leaving/export.h"
#include "leaving/live.h"
#include "serving/reach.h"
#include "commands.h"

enum {
    EXPORT_DRY_RUN = COMMAND_LONG + 1,
    EXPORT_COPY,
    EXPORT_CAREFUL,
    EXPORT_LIVE,
    EXPORT_QUIET,
    EXPORT_HOSTS,
    EXPORT_JSON,
    EXPORT_PROGRESS
};

const struct choice command_export_choices[] = {
    {EXPORT_DRY_RUN, "dry-run", NULL, "change nothing, say what would be done"},
    {EXPORT_COPY, "copy", NULL, "copy files that cannot be renamed into place, compare, remove the original"},
    {EXPORT_CAREFUL, "careful", NULL, "link and remove where the file system has no rename that replaces nothing"},
    {EXPORT_LIVE, "live", NULL, "while it is served: move the files of this node that are in quiet directories"},
    {EXPORT_QUIET, "quiet", "SECONDS", "with --live: in which no name came or went (default: 30)"},
    {'n', "node", "NAME", "with --live: what this node is called (default: the name of its daemon)"},
    {EXPORT_HOSTS, "hosts", "FILE", "nodes that rename what they made, one a line (default: those of Slurm's allocation)"},
    {EXPORT_JSON, "json", NULL, "the result as an object"},
    {EXPORT_PROGRESS, "progress", NULL, "show progress although standard error is no terminal"},
    {0},
};

struct export_order {
    struct export_options options;
    const char *node, *hosts;
    bool live;
    uint64_t quiet; /* seconds; 0: nobody said */
};

static int command_export_take_quiet(const struct command *command, struct export_order *order)
{
    if (config_number_parse(optarg, LIVE_QUIET_MAX, &order->quiet) == 0)
        return 0;
    error_usage(command, "--quiet '%s': not a number from 1 to %d", optarg, LIVE_QUIET_MAX);
    return COMMAND_WRONG;
}

static int command_export_take_options(const struct command *command, int argc, char **argv, struct export_order *order)
{
    int option, wrong = 0;
    while (wrong == 0 && (option = command_option(command, argc, argv)) >= 0)
        if (option == EXPORT_DRY_RUN)
            order->options.dry_run = true;
        else if (option == EXPORT_COPY)
            order->options.copy = true;
        else if (option == EXPORT_CAREFUL)
            order->options.careful = true;
        else if (option == EXPORT_LIVE)
            order->live = true;
        else if (option == EXPORT_QUIET)
            wrong = command_export_take_quiet(command, order);
        else if (option == 'n')
            order->node = optarg;
        else if (option == EXPORT_HOSTS)
            order->hosts = optarg;
        else if (option == EXPORT_JSON)
            order->options.json = true;
        else
            order->options.progress = true;
    return wrong != 0 ? wrong : option;
}

/* What the one way of exporting knows, and the other does not. */
static bool command_export_is_clear(const struct command *command, const struct export_order *order)
{
    const struct export_options *options = &order->options;
    if (order->live && (options->dry_run || options->copy || options->careful))
        error_usage(command, "--live goes with none of --dry-run, --copy and --careful");
    else if (order->hosts != NULL && (order->live || options->careful))
        error_usage(command, "--hosts goes with neither --live nor --careful");
    else if (!order->live && (order->quiet != 0 || order->node != NULL))
        error_usage(command, "--quiet and --node go with --live alone");
    else
        return true;
    return false;
}

static int command_export_live(const struct export_order *order, const char *root)
{
    const struct live_options live = {.quiet = (order->quiet != 0 ? order->quiet : LIVE_QUIET) * CLOCK_SECOND,
                                      .json = order->options.json,
                                      .progress = order->options.progress};
    struct daemon_options daemon = {0};
    struct roots roots;
    roots_init(&roots);
    int status = roots_add(&roots, root) < 0 ? STATUS_FAILED : reach_node(&roots, &daemon, order->node);
    if (status == 0)
        status = live_export(roots.paths[0], daemon.node, &live);
    roots_finish(&roots);
    return status;
}

/* By the nodes that made the files, where there are such. */
static int command_export_all(struct export_order *order, char *root)
{
    static struct helpers helpers;
    const bool is_alone = order->options.dry_run || order->options.careful;
    const int begun = is_alone ? 0 : helpers_begin(&helpers, &root, 1, order->hosts);
    order->options.owners = helpers_owners(&helpers, root);
    const int status = begun == 0 ? export_root(root, &order->options) : begun < 0 ? STATUS_FAILED : 128 + begun;
    helpers_end(&helpers);
    return status;
}

int command_export(const struct command *command, int argc, char **argv)
{
    struct export_order order = {0};
    int end = command_export_take_options(command, argc, argv, &order);
    if (end != COMMAND_END)
        return command_status(end);
    if (!command_export_is_clear(command, &order) || !command_one_word(command, argc, "root"))
        return STATUS_USAGE;
    return order.live ? command_export_live(&order, argv[optind]) : command_export_all(&order, argv[optind]);
}
