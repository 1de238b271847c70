/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "launch/proof.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "config/config.h"
#include "launch/nodes.h"
#include "programs/launch.h"
#include "programs/rank.h"
#include "serving/daemon.h"

const struct choice proof_choices[] = {
    {'n', "fake-nodes", "N", "ranks are spread over so many pretended nodes"},
    {0},
};

static const char *proof_rank_words(void)
{
    static char words[64];
    long number = rank_number(environ);
    snprintf(words, sizeof words, "rank %ld", number);
    return number < 0 ? "a process" : words;
}

static int proof_node_of_rank(struct daemon_options *options, uint64_t fakes)
{
    char name[32];
    long number = rank_number(environ);
    if (fakes == 0)
        return daemon_node(options, NULL);
    snprintf(name, sizeof name, NODES_FAKE, number < 0 ? (size_t)0 : (size_t)number % fakes);
    return daemon_node(options, name);
}

/* The shim has read its settings before main: once they are right, this program is begun again. */
static int proof_settle_node(uint64_t fakes, char **argv)
{
    struct daemon_options options;
    if (proof_node_of_rank(&options, fakes) < 0)
        return -1;
    const char *known = getenv("SHUNT_NODE");
    if (known && !strcmp(known, options.node))
        return 0;
    if (setenv("SHUNT_NODE", options.node, 1) == 0)
        SYS3(SYS_execve, "/proc/self/exe", argv, environ);
    error_report("/proc/self/exe: cannot be executed (mount /proc)");
    return -1;
}

static bool proof_is_served(const char *root)
{
    struct stat stat;
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/.shunt", root);
    if (lstat(path, &stat) < 0 && errno == ENOENT)
        return true;
    error_report("%s: %s on %s cannot use it, the daemon of node %s does not answer (run 'shunt status --root %s' there; name "
                 "all nodes of "
                 "the job with --hosts)",
                 root, proof_rank_words(), nodes_here(), getenv("SHUNT_NODE"), root);
    return false;
}

static bool proof_prove(void)
{
    struct roots roots;
    roots_init(&roots);
    if (!launch_shim_is_loaded()) {
        error_report(
            "%s on %s: would run without shunt, " LAUNCH_PRELOAD_NAME
            " is not loaded (check that the launcher passes LD_PRELOAD on, which is '%s', and run 'ldd' on the library there)",
            proof_rank_words(), nodes_here(), getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "");
        return false;
    }
    bool served = roots_default(&roots) == 0 && launch_set_root_ids(&roots) == 0;
    for (size_t i = 0; served && i < roots.count; i++)
        served = proof_is_served(roots.paths[i]);
    roots_finish(&roots);
    return served;
}

int proof_run(const struct command *command, int argc, char **argv)
{
    uint64_t fakes = 0;
    int option;
    while ((option = command_option(command, argc, argv)) >= 0)
        if (config_number_parse(optarg, NODES_MAX, &fakes) < 0)
            return error_usage(command, "--fake-nodes '%s': not a number", optarg);
    if (option != COMMAND_END)
        return command_status(option);
    if (optind == argc)
        return error_usage(command, "no command is given");
    if (proof_settle_node(fakes, argv - 1) < 0 || !proof_prove())
        return PROOF_FAILED;
    return launch_command(argv + optind);
}
