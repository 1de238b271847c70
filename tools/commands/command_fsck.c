/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "cli/stopping.h"
#include "repair/fsck.h"
#include "serving/hold.h"
#include "commands.h"

enum { FSCK_REPAIR_OPTION = COMMAND_LONG + 1, FSCK_RESTORE_OPTION, FSCK_DELETE_OPTION, FSCK_JSON_OPTION };

const struct choice command_fsck_choices[] = {
    {FSCK_REPAIR_OPTION, "repair", NULL, "settle conflicts and markers, remove what is empty or unfinished"},
    {FSCK_RESTORE_OPTION, "restore", NULL, "move the files of orphans to ROOT/shunt-restored/MIRROR/"},
    {FSCK_DELETE_OPTION, "delete", NULL, "delete orphans and their files, for good"},
    {FSCK_JSON_OPTION, "json", NULL, "the result as an object"},
    {0},
};

enum { FSCK_CLEAN = 0, FSCK_FAULTS = 1, FSCK_BAD = 2 };

static void command_fsck_summarize(struct fsck *fsck)
{
    if (fsck->json) {
        json_close(&fsck->writer, ']');
        json_unsigned(&fsck->writer, "directories", fsck->directories);
        json_unsigned(&fsck->writer, "repaired", fsck->repaired);
        json_unsigned(&fsck->writer, "repairable", fsck->repairable);
        json_unsigned(&fsck->writer, "troubles", fsck->troubles);
        json_close(&fsck->writer, '}');
    } else if (fsck->repaired + fsck->repairable + fsck->troubles == 0) {
        describe_print(fsck->root.path);
        printf(": clean (%zu director%s)\n", fsck->directories, fsck->directories == 1 ? "y" : "ies");
    } else {
        describe_print(fsck->root.path);
        printf(": %zu repaired, %zu repairable, %zu to look at\n", fsck->repaired, fsck->repairable, fsck->troubles);
    }
}

static int command_fsck_check(struct fsck *fsck)
{
    if (fsck->json) {
        json_open(&fsck->writer, NULL, '{');
        json_text(&fsck->writer, "root", fsck->root.path);
        json_open(&fsck->writer, "findings", '[');
    }
    const int error = opened_init(&fsck->opened, fsck->root.path);
    if (error < 0)
        fsck_tell(fsck, FSCK_TROUBLE, false, "unreadable", LAYOUT_OWN, "cannot be read: %s", error_words(error));
    fsck_trunk(fsck);
    opened_finish(&fsck->opened);
    if (!stopping()) /* else mirrors whose marker was not seen would be orphans */
        fsck_mirrors(fsck);
    command_fsck_summarize(fsck);
    mirror_names_finish(&fsck->known);
    if (fsck->troubles > 0)
        return FSCK_BAD;
    return fsck->repaired + fsck->repairable > 0 ? FSCK_FAULTS : FSCK_CLEAN;
}

static int command_fsck_check_held(struct fsck *fsck)
{
    struct hold hold;
    if (!fsck->repair && !fsck->restore && !fsck->discard) {
        fsck->served = session_is_served(fsck->root.path);
        return command_fsck_check(fsck);
    }
    stopping_catch_pipe(); /* other hosts take it for the claim of a process that lives */
    int status = FSCK_BAD;
    if (hold_take(&hold, fsck->root.path, "fsck") == 0) {
        if (hold_look_at_root(&fsck->root) == 0)
            status = command_fsck_check(fsck);
        hold_release(&hold);
    }
    int signal = stopping_release();
    if (signal == 0)
        return status;
    if (signal == STOPPING_LEASE) {
        error_report("%s: the claim on it ran out, since this process, or the file system, stood still; nothing is lost (run "
                     "this again)",
                     fsck->root.path);
        return FSCK_BAD;
    }
    error_report("%s: the check was interrupted, nothing is lost (run this again)", fsck->root.path);
    return 128 + signal;
}

/* Holding a root makes a directory in `.shunt`, which a plain directory must not get. */
static int command_fsck_look_for_own(const struct union_root *root)
{
    struct statx stat;
    char path[PATH_MAX + sizeof LAYOUT_OWN];
    struct text t;
    text_init(&t, path, sizeof path);
    text_add(&t, root->path);
    text_add(&t, "/" LAYOUT_OWN);
    return text_ok(&t) ? sys_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) : -ENAMETOOLONG;
}

static int command_fsck_check_root(struct fsck *fsck, const char *path)
{
    int error = union_root_init(&fsck->root, path, 0);
    if (error < 0) {
        error_report_path(path, error);
        return FSCK_BAD;
    }
    int status = FSCK_BAD;
    error = command_fsck_look_for_own(&fsck->root);
    if (error == 0)
        status = command_fsck_check_held(fsck);
    else if (error == -ENOENT)
        error_report("%s: not a root, it has no .shunt (give the directory that has one)", fsck->root.path);
    else
        error_report_path(fsck->root.path, error);
    union_root_finish(&fsck->root);
    return status;
}

static int command_fsck_take_options(struct fsck *fsck, const struct command *command, int argc, char **argv)
{
    int option;
    while ((option = command_option(command, argc, argv)) >= 0)
        switch (option) {
        case FSCK_REPAIR_OPTION:
            fsck->repair = true;
            break;
        case FSCK_RESTORE_OPTION:
            fsck->restore = true;
            break;
        case FSCK_DELETE_OPTION:
            fsck->discard = true;
            break;
        default:
            fsck->json = true;
        }
    return option;
}

int command_fsck(const struct command *command, int argc, char **argv)
{
    struct fsck fsck = {0};
    int end = command_fsck_take_options(&fsck, command, argc, argv);
    if (end != COMMAND_END)
        return command_status(end);
    if (fsck.restore && fsck.discard)
        return error_usage(command, "--restore and --delete exclude each other");
    if (!command_one_word(command, argc, "root"))
        return STATUS_USAGE;
    return command_fsck_check_root(&fsck, argv[optind]);
}
