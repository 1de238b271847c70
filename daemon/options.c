/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "complaint.h"
#include "config/config.h"
#include "union/layout.h"

static const struct option long_options[] = {
    {"root", required_argument, NULL, 'r'},      {"node", required_argument, NULL, 'n'},
    {"placement", required_argument, NULL, 'p'}, {"leaf-full", required_argument, NULL, 'l'},
    {"alone", no_argument, NULL, 'a'},           {"foreground", no_argument, NULL, 'f'},
    {"again", no_argument, NULL, 'A'},           {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},         {0},
};

static const char help[] = "usage: shuntd --root DIR [--node NAME] [--placement auto|branch] [--leaf-full N] [--alone]\n"
                           "              [--again] [--foreground]\n"
                           "Serves the files under DIR on this node until SIGTERM. Usually started by `shunt start` or `shunt "
                           "run`.\n";

static int options_take(struct shuntd_options *options, int which, const char *value)
{
    uint64_t number;
    switch (which) {
    case 'r':
        if (options->root[0] != '\0')
            return complain(-EINVAL, "%s: a shuntd serves one root (start another shuntd for this one)", value);
        if (strlen(value) >= sizeof options->root)
            return complain(-EINVAL, "--root: the path is too long (give one of less than %zu bytes)", sizeof options->root);
        strcpy(options->root, value);
        return 0;
    case 'n':
        if (!layout_node_is_valid(value, strlen(value)))
            return complain(
                -EINVAL, "node name '%s': invalid (use at most %d letters, digits, '-', '_' and '.', a letter or digit first)",
                value, LAYOUT_NODE_MAX);
        strcpy(options->node, value);
        return 0;
    case 'p':
        if (config_placement_parse(value, &options->placement) != 0)
            return complain(-EINVAL, "--placement '%s': neither auto nor branch (give one of them)", value);
        return 0;
    case 'l':
        if (config_number_parse(value, UINT32_MAX, &number) != 0)
            return complain(-EINVAL, "--leaf-full '%s': not a number from 1 to %u (give one)", value, UINT32_MAX);
        options->leaf_full = (uint32_t)number;
        return 0;
    case 'a':
        options->fabric = "none";
        return 0;
    case 'f':
        options->foreground = true;
        return 0;
    case 'A':
        options->again = true;
        return 0;
    case 'h':
        fputs(help, stdout);
        return 1;
    case 'V':
        puts("shuntd " SHUNT_VERSION);
        return 1;
    default:
        return complain(-EINVAL, "usage error (see 'shuntd --help')");
    }
}

/* Slurm may have several nodes on one host. */
static void options_default_node(const struct config *config, char node[LAYOUT_NODE_MAX + 1])
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    layout_node_of_host(config->slurm_node != NULL && *config->slurm_node != '\0' ? config->slurm_node : host, node);
}

static struct settings settings;

static void options_say_about_settings(bool is_error, const char *sentence)
{
    if (is_error) /* what is only doubtful, the tool that started this one says */
        complain(-EINVAL, "%s", sentence);
}

/* Of the site's own directory for configuration, which is found from that of this program. */
static const char *options_tree_file(char to[PATH_MAX])
{
    const ssize_t length = SHUNT_CONF_FROM_LIBEXEC[0] == '/' ? 0 : readlink("/proc/self/exe", to, PATH_MAX - 1);
    if (length < 0)
        return NULL;
    to[length] = '\0';
    char *slash = strrchr(to, '/');
    const size_t before = slash != NULL ? (size_t)(slash - to) + 1 : 0;
    return snprintf(to + before, PATH_MAX - before, "%s", SHUNT_CONF_FROM_LIBEXEC) < (int)(PATH_MAX - before) ? to : NULL;
}

static int options_read_settings(void)
{
    char tree_file[PATH_MAX];
    const int code = settings_read(&settings, environ, options_tree_file(tree_file), options_say_about_settings);
    return code == 0 ? settings_to_environment(&settings) : code;
}

static int options_from_environment(struct shuntd_options *options)
{
    struct config config;
    const int code = options_read_settings();
    if (code != 0)
        return code;
    config_read(&config, environ);
    const char *bad = config.bad != NULL ? config.bad : settings_bad_variable(&settings);
    if (bad != NULL)
        return complain(-EINVAL, "%s: %s (correct it or unset it)", bad, settings_fault(bad));
    options->job = config.job;
    options->run_base = config.run_base;
    options->catalogue_base = config.catalogue_base;
    options->catalogue_quiet = config.catalogue_quiet;
    options->placement = config.placement;
    options->leaf_full = config.leaf_full;
    options->index_limit = config.index_limit;
    options->stale = config.stale;
    options->deadline = config.deadline;
    options->fabric = config.fabric;
    options->logs_to_syslog = strcmp(settings_text(&settings, SETTINGS_LOG), "syslog") == 0;
    if (!settings_log_dir(&settings, environ, options->log_dir))
        options->log_dir[0] = '\0';
    options_default_node(&config, options->node);
    return config.node != NULL ? options_take(options, 'n', config.node) : 0;
}

int options_read(struct shuntd_options *options, int argc, char *argv[])
{
    int code = options_from_environment(options);
    for (int which; code == 0 && (which = getopt_long(argc, argv, "", long_options, NULL)) != -1;)
        code = options_take(options, which, optarg);
    if (code == 0 && (options->root[0] == '\0' || optind < argc))
        code = complain(-EINVAL, "no root is given (name the shared directory with --root DIR)");
    return code;
}

const struct settings *options_settings(void)
{
    return &settings;
}
