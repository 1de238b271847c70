/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <getopt.h>
#include <stdio.h>

#include "api/place.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "commands.h"

const struct choice command_stat_choices[] = {
    {COMMAND_LONG + 1, "json", NULL, "an array of objects, one for each path"},
    {0},
};

static void command_stat_print_attributes(const struct statx *stat)
{
    char mode[DESCRIBE_MODE];
    describe_mode(stat->stx_mode, mode);
    printf("  Size: %-15llu Blocks: %-10llu IO Block: %-6u %s\n", (unsigned long long)stat->stx_size,
           (unsigned long long)stat->stx_blocks, stat->stx_blksize, describe_type(stat->stx_mode));
    printf("Device: %u,%-13u Inode: %-11llu Links: %u\n", stat->stx_dev_major, stat->stx_dev_minor,
           (unsigned long long)stat->stx_ino, stat->stx_nlink);
    printf("Access: (%04o/%s)  Uid: (%5u/%8s)   Gid: (%5u/%8s)\n", stat->stx_mode & 07777u, mode, stat->stx_uid,
           describe_user(stat->stx_uid), stat->stx_gid, describe_group(stat->stx_gid));
}

static void command_stat_print_time(const char *what, const struct statx_timestamp *when)
{
    char text[DESCRIBE_TIME];
    describe_time_long(when, text);
    printf("%s: %s\n", what, text);
}

static void command_stat_print_times(const struct statx *stat)
{
    command_stat_print_time("Access", &stat->stx_atime);
    command_stat_print_time("Modify", &stat->stx_mtime);
    command_stat_print_time("Change", &stat->stx_ctime);
    if (stat->stx_mask & STATX_BTIME)
        command_stat_print_time(" Birth", &stat->stx_btime);
}

static void command_stat_print_path(const char *what, const char *path, const char *link)
{
    fputs(what, stdout);
    describe_print(path);
    if (link) {
        fputs(" -> ", stdout);
        describe_print(link);
    }
    putchar('\n');
}

static int command_stat_print_one(const struct place *place, const char *path)
{
    struct statx stat;
    char where[PATH_MAX], target[PATH_MAX];
    int error = folder_stat(&place->folder, &place->root, place->found, &stat);
    if (error == 0)
        error = folder_where(&place->folder, &place->root, place->found, where, sizeof where);
    if (error < 0)
        return error;
    const char *link = describe_target(&place->folder, place->found, target);
    const char *branch = describe_branch(&place->root, place->found);
    command_stat_print_path("  File: ", path, link);
    command_stat_print_attributes(&stat);
    command_stat_print_times(&stat);
    command_stat_print_path(" Where: ", where, NULL);
    if (branch)
        printf("Branch: %s  Leaf: %u\n", branch, place->found->leaf);
    else
        printf("Branch: the trunk\n");
    return 0;
}

static int command_stat_all(struct json *json, char **paths)
{
    struct place place;
    int status = STATUS_OK;
    place_init(&place);
    for (; *paths; paths++) {
        int error = place_find(&place, *paths, 0);
        if (error == 0)
            error = json ? describe_json(json, &place.folder, &place.root, place.found, *paths)
                         : command_stat_print_one(&place, *paths);
        if (error == 0)
            continue;
        error_report_path(*paths, error);
        status = STATUS_FAILED;
    }
    place_finish(&place);
    return status;
}

int command_stat(const struct command *command, int argc, char **argv)
{
    bool as_json = false;
    int end;
    while ((end = command_option(command, argc, argv)) >= 0)
        as_json = true;
    if (end != COMMAND_END)
        return command_status(end);
    if (optind == argc)
        return error_usage(command, "no path is given");
    struct json json = {0};
    if (!as_json)
        return command_stat_all(NULL, argv + optind);
    json_open(&json, NULL, '[');
    int status = command_stat_all(&json, argv + optind);
    json_close(&json, ']');
    return status;
}
