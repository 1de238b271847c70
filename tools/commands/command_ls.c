/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <dirent.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "api/place.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "cli/shown.h"
#include "tree/walk.h"
#include "commands.h"

const struct choice command_ls_choices[] = {
    {'l', "long", NULL, "mode, links, owner, group, size, time and where links point"},
    {'a', "all", NULL, "also names that begin with a dot"},
    {'R', "recursive", NULL, "also what is in the directories below"},
    {'1', NULL, NULL, "one name a line, also on a terminal"},
    {'d', "directory", NULL, "directories themselves, not what is in them"},
    {COMMAND_LONG + 1, "json", NULL, "an array of objects, one for each name"},
    {0},
};

struct ls {
    bool in_long, all, recursive, single, directory, json;
    bool headed; /* directories get their name above them */
    bool printed;
    int status;
    struct json writer;
};

/* One line of ls -l, and how wide its columns are. */
struct line {
    const struct union_name *name; /* NULL: the directory itself */
    const char *text;
    struct statx stat;
};

struct widths {
    int links, user, group, size;
};

static void command_ls_fail(struct ls *ls, const char *path, int error)
{
    error_report_path(path, error);
    ls->status = STATUS_FAILED;
}

static int command_ls_digits(uint64_t number)
{
    return snprintf(NULL, 0, "%llu", (unsigned long long)number);
}

static void command_ls_widen(int *width, int to)
{
    if (to > *width)
        *width = to;
}

static bool command_ls_is_device(const struct statx *stat)
{
    return S_ISCHR(stat->stx_mode) || S_ISBLK(stat->stx_mode);
}

static struct widths command_ls_measure(const struct line *lines, size_t count)
{
    struct widths widths = {0};
    for (size_t i = 0; i < count; i++) {
        const struct statx *stat = &lines[i].stat;
        command_ls_widen(&widths.links, command_ls_digits(stat->stx_nlink));
        command_ls_widen(&widths.user, (int)strlen(describe_user(stat->stx_uid)));
        command_ls_widen(&widths.group, (int)strlen(describe_group(stat->stx_gid)));
        command_ls_widen(&widths.size, command_ls_is_device(stat) ? command_ls_digits(stat->stx_rdev_major) + 2 +
                                                                        command_ls_digits(stat->stx_rdev_minor)
                                                                  : command_ls_digits(stat->stx_size));
    }
    return widths;
}

static void command_ls_print_size(const struct statx *stat, int width)
{
    if (command_ls_is_device(stat))
        printf(" %*u, %u", width - 2 - command_ls_digits(stat->stx_rdev_minor), stat->stx_rdev_major, stat->stx_rdev_minor);
    else
        printf(" %*llu", width, (unsigned long long)stat->stx_size);
}

static void command_ls_print_line(const struct folder *folder, const struct line *line, const struct widths *widths)
{
    char mode[DESCRIBE_MODE], when[DESCRIBE_TIME], target[PATH_MAX];
    const struct statx *stat = &line->stat;
    describe_mode(stat->stx_mode, mode);
    describe_time_short(&stat->stx_mtime, when);
    printf("%s %*u %-*s %-*s", mode, widths->links, stat->stx_nlink, widths->user, describe_user(stat->stx_uid), widths->group,
           describe_group(stat->stx_gid));
    command_ls_print_size(stat, widths->size);
    printf(" %s ", when);
    describe_print(line->text);
    if (describe_target(folder, line->name, target)) {
        fputs(" -> ", stdout);
        describe_print(target);
    }
    putchar('\n');
}

/* Down, then across, in as many columns as fit. */
static void command_ls_print_columns(const struct line *lines, size_t count, unsigned screen)
{
    unsigned widest = 0;
    for (size_t i = 0; i < count; i++)
        if (describe_width(lines[i].text) > widest)
            widest = describe_width(lines[i].text);
    size_t columns = screen / (widest + 2) ? screen / (widest + 2) : 1;
    size_t rows = (count + columns - 1) / columns;
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = row; i < count; i += rows) {
            describe_print(lines[i].text);
            if (i + rows < count)
                printf("%*s", (int)(widest + 2 - describe_width(lines[i].text)), "");
        }
        putchar('\n');
    }
}

static void command_ls_print_names(const struct ls *ls, const struct line *lines, size_t count)
{
    struct winsize window = {.ws_col = 80};
    if (!ls->single && isatty(STDOUT_FILENO)) {
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
        command_ls_print_columns(lines, count, window.ws_col ? window.ws_col : 80);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        describe_print(lines[i].text);
        putchar('\n');
    }
}

static void command_ls_print_lines(const struct ls *ls, const struct folder *folder, const struct line *lines, size_t count)
{
    if (!ls->in_long) {
        command_ls_print_names(ls, lines, count);
        return;
    }
    struct widths widths = command_ls_measure(lines, count);
    for (size_t i = 0; i < count; i++)
        command_ls_print_line(folder, &lines[i], &widths);
}

/* The names of a listing that are to be shown. A file that ends between listing and stat is left out. */
static size_t command_ls_collect(struct ls *ls, const struct place *place, const struct folder *folder, const char *shown,
                                 struct line *lines)
{
    const struct listing *listing = &folder->listing;
    char path[2 * PATH_MAX];
    size_t count = 0;
    for (size_t i = 0; i < listing->count; i++) {
        struct line *line = &lines[count];
        *line = (struct line){.name = &listing->names[i], .text = listing->names[i].name};
        if (line->text[0] == '.' && !ls->all)
            continue;
        int error = ls->in_long ? folder_stat(folder, &place->root, line->name, &line->stat) : 0;
        if (error < 0 && error != -ENOENT && visible_path_join(shown, line->text, path, sizeof path) == 0)
            command_ls_fail(ls, path, error);
        count += error == 0;
    }
    return count;
}

static void command_ls_print_total(const struct line *lines, size_t count)
{
    uint64_t blocks = 0;
    for (size_t i = 0; i < count; i++)
        blocks += lines[i].stat.stx_blocks;
    printf("total %llu\n", (unsigned long long)(blocks / 2));
}

/* -a of ls shows the directory itself and the one above, too. */
static size_t command_ls_add_dots(const struct ls *ls, const struct folder *folder, struct line *lines)
{
    static const char *const dots[] = {".", ".."};
    if (!ls->all)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        lines[i] = (struct line){.text = dots[i]};
        sys_statx(folder->fd, dots[i], 0, STATX_BASIC_STATS, &lines[i].stat);
    }
    return 2;
}

static void command_ls_json_names(struct ls *ls, const struct place *place, const struct folder *folder, const char *shown)
{
    char path[2 * PATH_MAX];
    for (size_t i = 0; i < folder->listing.count && !ferror(stdout); i++) {
        const struct union_name *name = &folder->listing.names[i];
        if (name->name[0] == '.' && !ls->all)
            continue;
        int error = visible_path_join(shown, name->name, path, sizeof path);
        if (error == 0)
            error = describe_json(&ls->writer, folder, &place->root, name, path);
        if (error < 0 && error != -ENOENT)
            command_ls_fail(ls, path, error);
    }
}

static void command_ls_print_head(const struct ls *ls, const char *shown)
{
    if (ls->printed)
        putchar('\n');
    describe_print(shown);
    puts(":");
}

static void command_ls_print_folder(struct ls *ls, const struct place *place, const struct folder *folder, const char *shown)
{
    if (folder->listing.trunk_unlisted)
        command_ls_fail(ls, shown, -EACCES);
    if (ls->json) {
        command_ls_json_names(ls, place, folder, shown);
        return;
    }
    struct line *lines = calloc(folder->listing.count + 2, sizeof *lines);
    if (!lines) {
        command_ls_fail(ls, shown, -ENOMEM);
        return;
    }
    if (ls->headed)
        command_ls_print_head(ls, shown);
    size_t count = command_ls_add_dots(ls, folder, lines);
    count += command_ls_collect(ls, place, folder, shown, lines + count);
    if (ls->in_long)
        command_ls_print_total(lines, count);
    command_ls_print_lines(ls, folder, lines, count);
    ls->printed = true;
    free(lines);
}

static bool command_ls_is_hidden_below(const char *path, const char *from)
{
    size_t skip = strcmp(from, ".") ? strlen(from) : 0;
    return path[skip] == '.' ? path[skip + 1] != '\0' : strstr(path + skip, "/.") != NULL;
}

static void command_ls_print_tree(struct ls *ls, struct place *place, const char *spelling)
{
    struct walk walk;
    char shown[2 * PATH_MAX];
    int more = walk_init(&walk, &place->root, place->folder.path, WALK_AHEAD);
    for (; more == 0 && !ferror(stdout) && (more = walk_next(&walk)) != 0; more = 0) {
        if (!ls->all && command_ls_is_hidden_below(walk.folder.path, place->folder.path))
            continue;
        int error = visible_path_below(spelling, place->folder.path, walk.folder.path, shown, sizeof shown);
        if (more < 0 || error < 0)
            command_ls_fail(ls, shown, more < 0 ? more : error);
        else
            command_ls_print_folder(ls, place, &walk.folder, shown);
    }
    if (more < 0)
        command_ls_fail(ls, spelling, more);
    walk_finish(&walk);
}

static bool command_ls_shows_content(const struct ls *ls, struct place *place)
{
    return !ls->directory && (!place->found || place->found->type == DT_DIR);
}

static unsigned command_ls_link_flags(const struct ls *ls)
{
    return ls->in_long || ls->directory ? 0 : PLACE_FOLLOW;
}

/* A dangling link is shown as what it is. */
static int command_ls_find(struct ls *ls, struct place *place, const char *path)
{
    int error = place_find(place, path, command_ls_link_flags(ls));
    return error == -ENOENT && command_ls_link_flags(ls) ? place_find(place, path, 0) : error;
}

static void command_ls_print_itself(struct ls *ls, struct place *place, const char *path)
{
    struct line line = {.name = place->found, .text = path};
    int error = ls->json ? describe_json(&ls->writer, &place->folder, &place->root, place->found, path)
                         : folder_stat(&place->folder, &place->root, place->found, &line.stat);
    if (error < 0)
        command_ls_fail(ls, path, error);
    else if (!ls->json)
        command_ls_print_lines(ls, &place->folder, &line, 1);
    ls->printed = true;
}

static void command_ls_print_content(struct ls *ls, struct place *place, const char *path)
{
    int error = place_find(place, path, PLACE_ENTER | command_ls_link_flags(ls));
    if (error == 0 && !ls->recursive)
        error = folder_list(&place->folder, &place->root, 0);
    if (error < 0)
        command_ls_fail(ls, path, error);
    else if (ls->recursive)
        command_ls_print_tree(ls, place, path);
    else
        command_ls_print_folder(ls, place, &place->folder, path);
}

/* Files first, then directories, as ls does; names that are not there are told with the files. */
static void command_ls_print_all(struct ls *ls, struct place *place, char **paths, size_t count)
{
    bool *content = calloc(count, sizeof *content);
    if (!content) {
        command_ls_fail(ls, paths[0], -ENOMEM);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int error = command_ls_find(ls, place, paths[i]);
        content[i] = error == 0 && command_ls_shows_content(ls, place);
        if (error < 0)
            command_ls_fail(ls, paths[i], error);
        else if (!content[i])
            command_ls_print_itself(ls, place, paths[i]);
    }
    for (size_t i = 0; i < count && !ferror(stdout); i++)
        if (content[i])
            command_ls_print_content(ls, place, paths[i]);
    free(content);
}

static int command_ls_take_options(struct ls *ls, const struct command *command, int argc, char **argv)
{
    int option;
    while ((option = command_option(command, argc, argv)) >= 0)
        switch (option) {
        case 'l':
            ls->in_long = true;
            break;
        case 'a':
            ls->all = true;
            break;
        case 'R':
            ls->recursive = true;
            break;
        case '1':
            ls->single = true;
            break;
        case 'd':
            ls->directory = true;
            break;
        default:
            ls->json = true;
        }
    return option;
}

int command_ls(const struct command *command, int argc, char **argv)
{
    struct ls ls = {0};
    int end = command_ls_take_options(&ls, command, argc, argv);
    if (end != COMMAND_END)
        return command_status(end);
    static char *here[] = {"."};
    char **paths = optind < argc ? argv + optind : here;
    size_t count = optind < argc ? (size_t)(argc - optind) : 1;
    ls.headed = ls.recursive || count > 1;
    struct place place;
    place_init(&place);
    if (ls.json)
        json_open(&ls.writer, NULL, '[');
    command_ls_print_all(&ls, &place, paths, count);
    if (ls.json)
        json_close(&ls.writer, ']');
    place_finish(&place);
    return ls.status;
}
