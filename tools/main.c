/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "bench/plan.h"
#include "bench/worker.h"
#include "launch.h"
#include "command.h"
#include "commands.h"

static int verb_of_help(const struct verb *verb, int argc, char **argv);

const struct verb verbs[] = {
    {"run", "[--root DIR]... [OPTION]... -- COMMAND...", "Start, run a command under shunt, stop, and export.",
     verb_run_choices, VERB_COMMAND, verb_run},
    {"start", "[--root DIR]... [OPTION]...", "Start the daemon of this node; returns when it serves.", verb_start_choices, 0,
     verb_start},
    {"exec", "[--root DIR]... [--node NAME] -- COMMAND...", "Run a command under shunt, after start.", verb_exec_choices,
     VERB_COMMAND, verb_exec},
    {"stop", "[--root DIR]... [--node NAME | --all]", "Stop the daemon; returns when it has ended.", verb_stop_choices, 0,
     verb_stop},
    {"status", "[--root DIR]... [--node NAME] [--all] [--json]", "Say who serves a root; fails if nobody does.",
     verb_status_choices, 0, verb_status_of},
    {"ls", "[-l] [-a] [-R] [-1] [-d] [--json] [PATH]...", "List what directories hold, wherever it lies.", verb_ls_choices, 0,
     verb_ls},
    {"stat", "[--json] PATH...", "Show what files are, and where they really lie.", verb_stat_choices, 0, verb_stat},
    {"tree", "[-a] [--json] [PATH]", "Show a directory and all below it.", verb_tree_choices, 0, verb_tree},
    {"where", "PATH...", "Print where files really lie, one path a line.", NULL, 0, verb_where},
    {"find", "[PATH]... [OPTION]...", "Print the paths of files that are wanted.", verb_find_choices, VERB_SINGLE_DASH,
     verb_find_files},
    {"export", "[--dry-run] [--copy] [--progress] [--json] ROOT", "Make a root a plain directory again.", verb_export_choices,
     0, verb_export},
    {"fsck", "[--repair] [--restore | --delete] [--json] ROOT", "Look for what is wrong in a root, and set it right.",
     verb_fsck_choices, 0, verb_fsck},
    {"bench", "[OPTION]... DIR", "Measure what a shared directory costs there, and whether shunt would help.", plan_choices, 0,
     verb_bench},
    {"help", "[VERB]", "Explain a verb.", NULL, 0, verb_of_help},
    {LAUNCH_PROVE, "COMMAND...", "Prove that the shim is loaded, then run a command.", NULL, VERB_COMMAND | VERB_HIDDEN,
     verb_prove},
    {WORKER, "TOP", "Make the calls that a benchmark measures.", NULL, VERB_HIDDEN, worker},
    {0},
};

static void print_overview(void)
{
    printf("usage: shunt VERB [OPTION]... [WORD]...\n"
           "Many nodes create files in one shared directory, each in directories of its own.\n\n");
    for (const struct verb *verb = verbs; verb->name; verb++)
        if (!(verb->flags & VERB_HIDDEN))
            printf("  %-8s %s\n", verb->name, verb->help);
    printf("\n`shunt VERB --help` explains a verb; `man shunt` explains all. SHUNT_ROOT names roots, "
           "separated by `:`.\n");
}

static int complain_verb(const char *name)
{
    complain("there is no verb '%s': see `shunt --help`", name);
    return STATUS_USAGE;
}

static int verb_of_help(const struct verb *verb, int argc, char **argv)
{
    if (argc < 2 || !strcmp(argv[1], "--help")) {
        print_overview();
        return STATUS_OK;
    }
    const struct verb *about = verb_find(argv[1]);
    if (!about)
        return complain_verb(argv[1]);
    verb_help(about);
    return STATUS_OK;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        complain("no verb is given: see `shunt --help`");
        return STATUS_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_overview();
        return STATUS_OK;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        puts("shunt " SHUNT_VERSION);
        return STATUS_OK;
    }
    if (argv[1][0] == '-') {
        complain("unknown option '%s': see `shunt --help`", argv[1]);
        return STATUS_USAGE;
    }
    const struct verb *verb = verb_find(argv[1]);
    return verb ? verb->run(verb, argc - 1, argv + 1) : complain_verb(argv[1]);
}

int main(int argc, char **argv)
{
    setlocale(LC_TIME, "");
    setlocale(LC_CTYPE, "");
    int status = dispatch(argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    complain("standard output cannot be written: %s", strerror(errno));
    return status ? status : STATUS_FAILED;
}
