/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/json.h"
#include "programs/site.h"
#include "commands.h"

const struct choice command_config_choices[] = {
    {COMMAND_LONG + 1, "json", NULL, "an object"},
    {0},
};

static void command_config_print_json(const struct settings *settings)
{
    static const char *const sources[] = {"built-in", "site", "user", "environment"};
    struct json json = {0};
    json_open(&json, NULL, '{');
    json_text(&json, "site_file", settings->is_there[0] ? settings->files[0] : NULL);
    json_text(&json, "user_file", settings->is_there[1] ? settings->files[1] : NULL);
    json_open(&json, "settings", '[');
    for (enum settings_key key = 0; key < SETTINGS_KEYS; key++) {
        const struct settings_value *value = &settings->values[key];
        json_open(&json, NULL, '{');
        json_text(&json, "setting", settings_name(key));
        json_text(&json, "value", settings_text(settings, key));
        json_text(&json, "source", sources[value->source]);
        if (value->line > 0)
            json_unsigned(&json, "line", value->line);
        json_bool(&json, "limited", value->is_limited);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
}

static void command_config_print_files(const struct settings *settings)
{
    for (size_t i = 0; i < SETTINGS_FILES; i++)
        if (settings->files[i][0] != '\0')
            printf("the %s's file: %s%s\n", i == 0 ? "site" : "user", settings->files[i],
                   settings->is_there[i] ? "" : " (there is none)");
}

static void command_config_print(const struct settings *settings)
{
    char origin[PATH_MAX + 32];
    for (enum settings_key key = 0; key < SETTINGS_KEYS; key++) {
        const struct settings_value *value = &settings->values[key];
        const char *text = settings_text(settings, key);
        printf("%-16s %-32s %s%s\n", settings_name(key), *text != '\0' ? text : "-", settings_origin(settings, key, origin),
               value->is_limited ? " (limit)" : "");
    }
    command_config_print_files(settings);
}

static int command_config_check(const struct settings *settings)
{
    int status = STATUS_OK;
    for (enum settings_key key = 0; key < SETTINGS_KEYS; key++)
        if (settings->values[key].is_bad) {
            site_complain_variable(settings_variable(key));
            status = STATUS_FAILED;
        }
    return status;
}

int command_config(const struct command *command, int argc, char **argv)
{
    bool as_json = false;
    int end;
    while ((end = command_option(command, argc, argv)) >= 0)
        as_json = true;
    if (end != COMMAND_END)
        return command_status(end);
    if (optind < argc)
        return error_usage(command, "unexpected argument '%s'", argv[optind]);
    if (as_json)
        command_config_print_json(site_settings());
    else
        command_config_print(site_settings());
    return command_config_check(site_settings());
}
