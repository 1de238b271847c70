/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"
#include "config/config.h"
#include "programs/container.h"
#include "programs/launch.h"
#include "programs/places.h"
#include "programs/site.h"
#include "serving/reach.h"
#include "commands.h"

const struct choice command_env_choices[] = {
    {'r', "root", "DIR", "the shared directory; may be given again (default: SHUNT_ROOT)"},
    {'n', "node", "NAME", "what this node is called (default: the name of its daemon)"},
    {COMMAND_LONG + 1, "container", "PROGRAM", "what starts the container: " CONTAINER_NAMES},
    {0},
};

/* Printed where nothing else can be: whatever starts containers refuses it, so that no command runs without what it needs. */
#define COMMAND_ENV_REFUSED "--shunt-env-failed"

static const char *const command_env_variables[] = {"LD_PRELOAD",   "SHUNT_ROOT",    "SHUNT_ROOT_ID",  "SHUNT_NODE",
                                                    "SHUNT_SERVED", "SHUNT_RUN_DIR", "SHUNT_DEADLINE", NULL};

static bool command_env_takes(const struct container *container, const char *what, const char *text)
{
    if (container_takes(container, text))
        return true;
    error_report("%s: '%s' cannot be a word of a command line, it has a space, a comma or a character of patterns (rename it)",
                 what, text);
    return false;
}

/* The same path inside as on the host: $LIB, which launch_exec says, is another directory in another distribution. */
static int command_env_set(const struct roots *roots, const char *node)
{
    char library[PATH_MAX];
    struct config config;
    if (places_preload(library) < 0 || launch_set_environment(roots, node) < 0)
        return -1;
    config_read(&config, environ);
    return setenv("LD_PRELOAD", library, 1) < 0 || setenv("SHUNT_RUN_DIR", config.run_base, 1) < 0 ? -1 : 0;
}

static bool command_env_can_print(const struct container *container, const struct roots *roots)
{
    bool can = true;
    for (size_t i = 0; can && i < roots->count; i++)
        can = command_env_takes(container, "root", roots->paths[i]);
    for (size_t i = 0; can && command_env_variables[i]; i++) {
        const char *value = getenv(command_env_variables[i]);
        can = !value || !*value || command_env_takes(container, command_env_variables[i], value);
    }
    return can;
}

static void command_env_print(const struct container *container)
{
    struct roots all;
    container_begin(container, stdout);
    container_bind(container, getenv("LD_PRELOAD"), true, stdout);
    container_bind(container, getenv("SHUNT_RUN_DIR"), false, stdout);
    roots_init(&all);
    roots_served(&all);
    for (size_t i = 0; i < all.count; i++)
        container_bind(container, all.paths[i], false, stdout);
    roots_finish(&all);
    for (size_t i = 0; command_env_variables[i]; i++) {
        const char *value = getenv(command_env_variables[i]);
        if (value && *value)
            container_set(container, command_env_variables[i], value, stdout);
    }
}

/* Where shunt is off, the roots are plain directories. */
static int command_env_without(const struct container *container, const struct roots *roots)
{
    if (site_do_without(roots, "the container runs without it") < 0 || !command_env_can_print(container, roots))
        return STATUS_FAILED;
    for (size_t i = 0; i < roots->count; i++)
        container_bind(container, roots->paths[i], false, stdout);
    return STATUS_OK;
}

static int command_env_for(const struct container *container, const struct roots *roots, const char *given)
{
    struct daemon_options options = {0};
    if (site_is_off() && !site_is_served(roots))
        return command_env_without(container, roots);
    if (site_check_variables() < 0)
        return STATUS_FAILED;
    const int status = reach_node(roots, &options, given);
    if (status == STATUS_USAGE)
        return status;
    if (status != 0 || command_env_set(roots, options.node) < 0 || !reach_prove() || !command_env_can_print(container, roots))
        return STATUS_FAILED;
    command_env_print(container);
    return STATUS_OK;
}

struct asked {
    struct roots roots;
    const char *node, *program;
};

/* COMMAND_END, COMMAND_HELPED or COMMAND_WRONG. */
static int command_env_read(const struct command *command, int argc, char **argv, struct asked *asked)
{
    int end;
    while ((end = command_option(command, argc, argv)) >= 0)
        if (end == 'n')
            asked->node = optarg;
        else if (end == COMMAND_LONG + 1)
            asked->program = optarg;
        else if (roots_add(&asked->roots, optarg) < 0)
            return COMMAND_WRONG;
    if (end == COMMAND_END && optind < argc)
        error_usage(command, "unexpected argument '%s', roots are given with --root", argv[optind]);
    return end == COMMAND_END && optind < argc ? COMMAND_WRONG : end;
}

static int command_env_do(const struct command *command, struct asked *asked)
{
    if (!asked->program)
        return error_usage(command, "--container is not given, it says what starts the container: " CONTAINER_NAMES);
    const struct container *container = container_find(asked->program);
    if (!container)
        return error_usage(command, "--container '%s': not " CONTAINER_NAMES, asked->program);
    return roots_default(&asked->roots) < 0 ? STATUS_USAGE : command_env_for(container, &asked->roots, asked->node);
}

int command_env(const struct command *command, int argc, char **argv)
{
    struct asked asked = {0};
    roots_init(&asked.roots);
    const int end = command_env_read(command, argc, argv, &asked);
    const int status = end == COMMAND_END ? command_env_do(command, &asked) : command_status(end);
    if (end != COMMAND_HELPED)
        puts(status == STATUS_OK ? "" : COMMAND_ENV_REFUSED);
    roots_finish(&asked.roots);
    return status;
}
