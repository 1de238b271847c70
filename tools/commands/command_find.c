/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/place.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "cli/shown.h"
#include "tree/newer.h"
#include "tree/walk.h"
#include "commands.h"

enum {
    FIND_NAME = COMMAND_LONG + 1,
    FIND_PATH,
    FIND_TYPE,
    FIND_BRANCH,
    FIND_TRUNK,
    FIND_NEWER,
    FIND_COUNT,
    FIND_PRINT,
    FIND_PRINT0
};

const struct choice command_find_choices[] = {
    {FIND_NAME, "name", "PATTERN", "only names that this pattern matches"},
    {FIND_PATH, "path", "PATTERN", "only what this pattern matches as it is printed, also across slashes"},
    {FIND_TYPE, "type", "f|d|l|p|s|b|c", "only files, directories, links, FIFOs, sockets, block or character devices"},
    {FIND_BRANCH, "branch", "NAME", "only what lies in this branch, or in any of this node"},
    {FIND_TRUNK, "trunk", NULL, "only what lies in the trunk"},
    {FIND_NEWER, "newer", "FILE", "only what lies in a directory that was modified after FILE was"},
    {FIND_COUNT, "count", NULL, "print only how many there are"},
    {FIND_PRINT, "print", NULL, "end each path with a newline, as without any of these"},
    {FIND_PRINT0, "print0", NULL, "end each path with a zero byte, for xargs -0"},
    {0},
};

/* One condition. */
struct test {
    int option;
    const char *text;
    size_t length, head, tail; /* of a pattern: so many bytes at its beginning and at its end stand for themselves */
    uint8_t type;              /* of -type */
};

/* What they are asked about. */
struct candidate {
    const char *path; /* NULL: it is NAME in DIRECTORY */
    const char *directory, *name;
    uint8_t type;
    const char *branch; /* NULL: the trunk */
};

struct find {
    struct test *tests; /* all are to hold */
    size_t test_count;
    struct newer newer;
    int output; /* FIND_COUNT, FIND_PRINT or FIND_PRINT0; 0: none is given */
    size_t matches;
    int status;
    char path[2 * PATH_MAX]; /* what command_find_path answered last */
};

static void command_find_fail(struct find *find, const char *path, int error)
{
    error_report_path(path, error);
    find->status = STATUS_FAILED;
}

static bool command_find_branch_matches(const char *branch, const char *wanted)
{
    uint32_t incarnation;
    size_t node = layout_branch_node(branch, strlen(branch), &incarnation);
    return !strcmp(branch, wanted) || (strlen(wanted) == node && !strncmp(branch, wanted, node));
}

/* Made when it is needed, which it is of few of many names. */
static const char *command_find_path(struct find *find, const struct candidate *candidate)
{
    if (candidate->path != NULL)
        return candidate->path;
    visible_path_join(candidate->directory, candidate->name, find->path, sizeof find->path);
    return find->path;
}

/* fnmatch makes wide characters of both: most names are told apart before that. */
static bool command_find_pattern_matches(const struct test *test, const char *name)
{
    const size_t length = strlen(name);
    if (length < test->head || length < test->tail || memcmp(name, test->text, test->head) != 0 ||
        memcmp(name + length - test->tail, test->text + test->length - test->tail, test->tail) != 0)
        return false;
    return fnmatch(test->text, name, 0) == 0;
}

static bool command_find_test_holds(struct find *find, const struct test *test, const struct candidate *candidate)
{
    switch (test->option) {
    case FIND_NAME:
        return command_find_pattern_matches(test, candidate->name);
    case FIND_PATH:
        return command_find_pattern_matches(test, command_find_path(find, candidate));
    case FIND_TYPE:
        return candidate->type == test->type;
    case FIND_BRANCH:
        return candidate->branch && command_find_branch_matches(candidate->branch, test->text);
    case FIND_TRUNK:
        return !candidate->branch;
    default: /* -newer, which is asked by itself */
        return true;
    }
}

static bool command_find_matches(struct find *find, const struct candidate *candidate)
{
    size_t i = 0;
    while (i < find->test_count && command_find_test_holds(find, &find->tests[i], candidate))
        i++;
    return i == find->test_count;
}

static void command_find_print(struct find *find, const char *path)
{
    find->matches++;
    if (find->output == FIND_COUNT)
        return;
    if (find->output == FIND_PRINT0)
        fputs(path, stdout);
    else
        describe_print(path);
    putchar(find->output == FIND_PRINT0 ? '\0' : '\n');
}

static void command_find_try_name(struct find *find, const struct folder *folder, const struct union_root *root,
                                  const struct union_name *name, const struct candidate *candidate)
{
    if (!command_find_matches(find, candidate))
        return;
    int newer = find->newer.asked ? newer_name(&find->newer, folder, root, name) : 1;
    if (newer < 0)
        command_find_fail(find, command_find_path(find, candidate), newer);
    else if (newer)
        command_find_print(find, command_find_path(find, candidate));
}

static void command_find_print_folder(struct find *find, const struct walk *walk, const char *shown)
{
    const struct listing *listing = &walk->folder.listing;
    newer_enter(&find->newer, &walk->before);
    for (size_t i = 0; i < listing->count && !ferror(stdout); i++) {
        const struct union_name *name = &listing->names[i];
        if (name->type == DT_DIR)
            continue;
        struct candidate candidate = {NULL, shown, name->name, name->type, describe_branch(walk->root, name)};
        command_find_try_name(find, &walk->folder, walk->root, name, &candidate);
    }
    if (listing->trunk_unlisted)
        command_find_fail(find, shown, -EACCES);
}

/* The last component, without the slashes after it. */
static const char *command_find_last_of(const char *path, char to[NAME_MAX + 1])
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    begin -= begin == end && begin > 0; /* it is `/` */
    snprintf(to, NAME_MAX + 1, "%.*s", (int)(end - begin), path + begin);
    return to;
}

static void command_find_try_directory(struct find *find, const struct walk *walk, const char *shown)
{
    char last[NAME_MAX + 1];
    struct candidate candidate = {shown, NULL, command_find_last_of(shown, last), DT_DIR, NULL};
    if (!command_find_matches(find, &candidate))
        return;
    int newer = find->newer.asked ? newer_directory(&find->newer, walk->root_fd, walk->folder.path) : 1;
    if (newer < 0)
        command_find_fail(find, shown, newer);
    else if (newer)
        command_find_print(find, shown);
}

static void command_find_below(struct find *find, struct place *place, const char *spelling)
{
    struct walk walk;
    char shown[2 * PATH_MAX];
    int more = walk_init(&walk, &place->root, place->folder.path, WALK_AHEAD);
    if (more < 0)
        command_find_fail(find, spelling, more);
    for (; more == 0 && !ferror(stdout) && (more = walk_next(&walk)) != 0; more = 0) {
        int error = visible_path_below(spelling, place->folder.path, walk.folder.path, shown, sizeof shown);
        if (error == 0)
            command_find_try_directory(find, &walk, shown);
        if (more < 0 || error < 0)
            command_find_fail(find, shown, more < 0 ? more : error);
        else
            command_find_print_folder(find, &walk, shown);
    }
    walk_finish(&walk);
}

/* What is no directory. */
static void command_find_itself(struct find *find, const struct place *place, const char *path)
{
    char last[NAME_MAX + 1];
    struct statx stat;
    struct candidate candidate = {path, NULL, command_find_last_of(path, last), place->found->type,
                                  describe_branch(&place->root, place->found)};
    int error = find->newer.asked ? folder_stat(&place->folder, &place->root, NULL, &stat) : 0;
    if (error < 0) {
        command_find_fail(find, path, error);
        return;
    }
    if (find->newer.asked)
        newer_enter(&find->newer, &stat);
    command_find_try_name(find, &place->folder, &place->root, place->found, &candidate);
}

static void command_find_paths(struct find *find, char **paths)
{
    struct place place;
    place_init(&place);
    for (; *paths; paths++) {
        int error = place_find(&place, *paths, PLACE_ENTER);
        if (error < 0)
            command_find_fail(find, *paths, error);
        else if (place.found)
            command_find_itself(find, &place, *paths);
        else
            command_find_below(find, &place, *paths);
    }
    place_finish(&place);
}

static int command_find_take_type(const struct command *command, struct test *test)
{
    static const struct {
        char letter;
        uint8_t type;
    } types[] = {{'f', DT_REG}, {'d', DT_DIR}, {'l', DT_LNK}, {'p', DT_FIFO}, {'s', DT_SOCK}, {'b', DT_BLK}, {'c', DT_CHR}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (test->text[0] == types[i].letter && test->text[1] == '\0') {
            test->type = types[i].type;
            return 0;
        }
    error_usage(command, "-type '%s': not one of f, d, l, p, s, b and c", test->text);
    return COMMAND_WRONG;
}

/* A backslash or a bracket may be a part of what stands for itself, in encodings other than UTF-8 also of a character: the end
 * of a pattern that has one is left to fnmatch. */
static void command_find_take_pattern(struct test *test)
{
    test->length = strlen(test->text);
    test->head = strcspn(test->text, "*?[\\");
    if (test->text[strcspn(test->text, "[\\")] != '\0')
        return;
    while (test->tail < test->length && strchr("*?", test->text[test->length - test->tail - 1]) == NULL)
        test->tail++;
}

static int command_find_complain_output(const struct command *command)
{
    error_usage(command, "-count, -print and -print0 exclude each other");
    return COMMAND_WRONG;
}

/* There are as many tests as arguments at most. */
static int command_find_take_options(struct find *find, const struct command *command, int argc, char **argv)
{
    int option, wrong = 0;
    while (wrong == 0 && (option = command_option(command, argc, argv)) >= 0) {
        struct test test = {.option = option, .text = optarg};
        if (option == FIND_TYPE)
            wrong = command_find_take_type(command, &test);
        if (option == FIND_NAME || option == FIND_PATH)
            command_find_take_pattern(&test);
        if (option != FIND_COUNT && option != FIND_PRINT && option != FIND_PRINT0)
            find->tests[find->test_count++] = test;
        else if (find->output == 0 || find->output == option)
            find->output = option;
        else
            wrong = command_find_complain_output(command);
    }
    return wrong ? wrong : option;
}

static bool command_find_has(const struct find *find, int option)
{
    size_t i = 0;
    while (i < find->test_count && find->tests[i].option != option)
        i++;
    return i < find->test_count;
}

static int command_find_take_times(struct find *find)
{
    for (size_t i = 0; i < find->test_count; i++) {
        int error = find->tests[i].option == FIND_NEWER ? newer_add(&find->newer, find->tests[i].text) : 0;
        if (error < 0) {
            error_report("%s: has no time for -newer to compare with: %s (name a file that exists)", find->tests[i].text,
                         strerror(-error));
            return STATUS_FAILED;
        }
    }
    return STATUS_OK;
}

static int command_find_run(struct find *find, const struct command *command, int argc, char **argv)
{
    static char *here[] = {".", NULL};
    int end = command_find_take_options(find, command, argc, argv);
    if (end != COMMAND_END)
        return command_status(end);
    if (command_find_has(find, FIND_BRANCH) && command_find_has(find, FIND_TRUNK))
        return error_usage(command, "-branch and -trunk exclude each other");
    if (command_find_take_times(find) != STATUS_OK)
        return STATUS_FAILED;
    command_find_paths(find, optind < argc ? argv + optind : here);
    if (find->output == FIND_COUNT)
        printf("%zu\n", find->matches);
    return find->status;
}

int command_find_files(const struct command *command, int argc, char **argv)
{
    struct find find = {.tests = calloc((size_t)argc, sizeof *find.tests), .status = STATUS_OK};
    int status = STATUS_FAILED;
    if (find.tests)
        status = command_find_run(&find, command, argc, argv);
    else
        error_report("%s: not enough memory (free some and run this again)", argv[0]);
    newer_finish(&find.newer);
    free(find.tests);
    return status;
}
