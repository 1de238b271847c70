/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/standard_streams.h"
#include "bench/plan.h"
#include "bench/worker.h"
#include "cli/command.h"
#include "programs/launch.h"
#include "programs/site.h"
#include "commands.h"

static int main_command_of_help(const struct command *command, int argc, char **argv);

static const struct command commands[] = {
    {"run", "[--root DIR]... [OPTION]... -- COMMAND...", "Start, run a command under shunt, stop, and export.",
     command_run_choices, COMMAND_COMMAND, command_run},
    {"start", "[--root DIR]... [OPTION]...", "Start the daemon of this node; returns when it serves.", command_start_choices, 0,
     command_start},
    {"exec", "[--root DIR]... [--node NAME] [--wait SECONDS] -- COMMAND...", "Run a command under shunt, after start.",
     command_exec_choices, COMMAND_COMMAND, command_exec},
    {"env", "[--root DIR]... [--node NAME] --container PROGRAM",
     "Print the options with which a container is served, after start.", command_env_choices, 0, command_env},
    {"mount", "[--node NAME] [--foreground] [--log FILE] [-o OPTION,...] ROOT DIR",
     "Show a root as a file system of its own, to every program.", command_mount_choices, 0, command_mount},
    {"umount", "DIR...", "Take it away again; fails while it is in use.", NULL, 0, command_umount},
    {"stop", "[--root DIR]... [--node NAME | --all] [--export [--hosts FILE]]", "Stop the daemon; returns when it has ended.",
     command_stop_choices, 0, command_stop},
    {"status", "[--root DIR]... [--node NAME] [--all] [--verbose] [--metrics] [--json]",
     "Say who serves a root; fails if nobody does. Without a root: all sessions of this host.", command_status_choices, 0,
     command_status_of},
    {"cleanup", "[--user USER] [--job ID] [--all]", "Remove what jobs that have ended left on this host, for an epilog.",
     command_cleanup_choices, 0, command_cleanup},
    {"config", "[--json]", "Show the settings that hold on this host, and where each is from.", command_config_choices, 0,
     command_config},
    {"doctor", "[--root DIR]... [--host HOST]... [--json]", "Check whether shunt can work on this host and in a directory.",
     command_doctor_choices, 0, command_doctor},
    {"ls", "[-l] [-a] [-R] [-1] [-d] [--json] [PATH]...", "List what directories hold, wherever it lies.", command_ls_choices,
     0, command_ls},
    {"stat", "[--json] PATH...", "Show what files are, and where they really lie.", command_stat_choices, 0, command_stat},
    {"tree", "[-a] [--json] [PATH]", "Show a directory and all below it.", command_tree_choices, 0, command_tree},
    {"where", "PATH...", "Print where files really lie, one path a line.", NULL, 0, command_where},
    {"find", "[PATH]... [OPTION]...", "Print the paths of files that are wanted.", command_find_choices, COMMAND_SINGLE_DASH,
     command_find_files},
    {"names", "[-0] [--json] ROOT", "Print all names of a root as a stream, for scripts.", command_names_choices, 0,
     command_names},
    {"export",
     "[--dry-run] [--copy] [--careful] [--live [--quiet SECONDS] [--node NAME]] [--hosts FILE] [--progress] [--json] "
     "ROOT",
     "Make a root a plain directory again.", command_export_choices, 0, command_export},
    {"fsck", "[--repair] [--restore | --delete] [--json] ROOT", "Look for what is wrong in a root, and set it right.",
     command_fsck_choices, 0, command_fsck},
    {"bench", "[OPTION]... DIR", "Measure what a shared directory costs there, and whether shunt would help.", plan_choices, 0,
     command_bench},
    {"help", "[SUBCOMMAND]", "Explain a subcommand.", NULL, 0, main_command_of_help},
    {LAUNCH_PROVE, "COMMAND...", "Prove that the shim is loaded, then run a command.", command_prove_choices,
     COMMAND_COMMAND | COMMAND_HIDDEN, command_prove},
    {WORKER, "TOP", "Make the calls that a benchmark measures.", NULL, COMMAND_HIDDEN, worker},
    {0},
};

static void main_print_overview(void)
{
    printf("usage: shunt SUBCOMMAND [OPTION]... [WORD]...\n"
           "Many nodes create files in one shared directory, each in directories of its own.\n\n");
    for (const struct command *command = commands; command->name; command++)
        if (!(command->flags & COMMAND_HIDDEN))
            printf("  %-8s %s\n", command->name, command->help);
    printf("\n`shunt SUBCOMMAND --help` explains a subcommand; `man shunt` names the page of each. SHUNT_ROOT names roots, "
           "separated by `:`.\n");
}

static int main_complain_command(const char *name)
{
    const char *nearest = command_nearest(commands, name);
    if (nearest)
        error_report("unknown subcommand '%s' (did you mean '%s'? see 'shunt --help')", name, nearest);
    else
        error_report("unknown subcommand '%s' (see 'shunt --help')", name);
    return STATUS_USAGE;
}

static int main_command_of_help(const struct command *command, int argc, char **argv)
{
    if (argc < 2 || !strcmp(argv[1], "--help")) {
        main_print_overview();
        return STATUS_OK;
    }
    const struct command *about = command_find(commands, argv[1]);
    if (!about)
        return main_complain_command(argv[1]);
    command_help(about);
    return STATUS_OK;
}

static int main_dispatch(int argc, char **argv)
{
    if (argc < 2) {
        error_report("no subcommand is given (see 'shunt --help')");
        return STATUS_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        main_print_overview();
        return STATUS_OK;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        puts("shunt " SHUNT_VERSION);
        return STATUS_OK;
    }
    if (argv[1][0] == '-') {
        error_report("unknown option '%s' (see 'shunt --help')", argv[1]);
        return STATUS_USAGE;
    }
    const struct command *command = command_find(commands, argv[1]);
    if (!command)
        return main_complain_command(argv[1]);
    const bool is_begun = command->flags & COMMAND_HIDDEN; /* by this program, in the environment that it has made */
    if (!is_begun && command->run != main_command_of_help && site_read(true) < 0)
        return command->flags & COMMAND_COMMAND ? LAUNCH_NO_SHIM : STATUS_FAILED;
    return command->run(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    standard_streams_occupy();
    setlocale(LC_TIME, "");
    setlocale(LC_CTYPE, "");
    int status = main_dispatch(argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    error_report("standard output: cannot be written: %s (check the disk or the program that it goes to)", strerror(errno));
    return status ? status : STATUS_FAILED;
}
