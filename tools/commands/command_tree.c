/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/place.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "tree/walk.h"
#include "commands.h"

const struct choice command_tree_choices[] = {
    {'a', "all", NULL, "also names that begin with a dot"},
    {COMMAND_LONG + 1, "json", NULL, "an object with entries in it, and so on down"},
    {0},
};

#define TREE_DEEP (PATH_MAX / 2) /* directories within directories */

struct tree {
    const struct union_root *root;
    int root_fd;
    bool all, as_json;
    struct json json;
    bool last[TREE_DEEP];  /* at each depth: is this the last entry of its directory? */
    char target[PATH_MAX]; /* of the link being printed: not on so deep a stack */
    size_t directories, files, redirected;
    int status;
};

static void command_tree_print_prefix(const struct tree *tree, size_t depth)
{
    for (size_t i = 1; i < depth; i++)
        fputs(tree->last[i] ? "    " : "|   ", stdout);
    fputs(tree->last[depth] ? "`-- " : "|-- ", stdout);
}

static void command_tree_print_name(struct tree *tree, const struct folder *folder, const struct union_name *name, size_t depth)
{
    const char *branch = describe_branch(tree->root, name);
    command_tree_print_prefix(tree, depth);
    describe_print(name->name);
    if (describe_target(folder, name, tree->target)) {
        fputs(" -> ", stdout);
        describe_print(tree->target);
    }
    if (branch)
        printf("  [%s]", branch);
    putchar('\n');
}

static const char *command_tree_type_word(uint8_t type)
{
    static const char *const words[] = {[DT_REG] = "file",    [DT_DIR] = "directory", [DT_LNK] = "link", [DT_FIFO] = "fifo",
                                        [DT_SOCK] = "socket", [DT_CHR] = "character", [DT_BLK] = "block"};
    const char *word = type < sizeof words / sizeof *words ? words[type] : NULL;
    return word ? word : "unknown";
}

static void command_tree_json_name(struct tree *tree, const struct folder *folder, const struct union_name *name)
{
    json_open(&tree->json, NULL, '{');
    json_text(&tree->json, "name", name->name);
    json_text(&tree->json, "type", command_tree_type_word(name->type));
    json_text(&tree->json, "branch", describe_branch(tree->root, name));
    if (describe_target(folder, name, tree->target))
        json_text(&tree->json, "target", tree->target);
}

static size_t command_tree_count_shown(const struct tree *tree, const struct listing *listing)
{
    size_t count = 0;
    for (size_t i = 0; i < listing->count; i++)
        count += tree->all || listing->names[i].name[0] != '.';
    return count;
}

static void command_tree_print_folder(struct tree *tree, const struct folder *folder, const char *path, size_t depth);

static void command_tree_fail(struct tree *tree, const char *path, int error)
{
    error_report_path(path, error);
    tree->status = STATUS_FAILED;
}

/* Too large for so deep a stack. */
struct below {
    struct folder folder;
    char path[PATH_MAX];
};

static int command_tree_open_below(const struct tree *tree, const struct folder *above, const char *name, struct below *below)
{
    int error = folder_path(above, name, below->path, sizeof below->path);
    if (error == 0)
        error = folder_open(&below->folder, tree->root_fd, below->path);
    if (error < 0)
        return error;
    error = folder_list(&below->folder, tree->root, 0);
    return walk_is_another_root(&below->folder, error) ? -EMULTIHOP : error;
}

static void command_tree_print_below(struct tree *tree, const struct folder *above, const char *name, size_t depth)
{
    struct below *below = malloc(sizeof *below);
    int error = below ? 0 : -ENOMEM;
    if (below)
        below->folder.fd = -1;
    if (error == 0)
        error = depth < TREE_DEEP ? command_tree_open_below(tree, above, name, below) : -ENAMETOOLONG;
    if (error == 0)
        command_tree_print_folder(tree, &below->folder, name, depth);
    else
        command_tree_fail(tree, name, error);
    if (below)
        folder_close(&below->folder);
    free(below);
}

static void command_tree_print_entry(struct tree *tree, const struct folder *folder, const struct union_name *name,
                                     size_t depth)
{
    if (tree->as_json)
        command_tree_json_name(tree, folder, name);
    else
        command_tree_print_name(tree, folder, name, depth);
    tree->redirected += name->branch > 0;
    tree->directories += name->type == DT_DIR;
    tree->files += name->type != DT_DIR;
    if (name->type == DT_DIR)
        command_tree_print_below(tree, folder, name->name, depth + 1);
    if (tree->as_json)
        json_close(&tree->json, '}');
}

static void command_tree_print_folder(struct tree *tree, const struct folder *folder, const char *path, size_t depth)
{
    if (folder->listing.trunk_unlisted)
        command_tree_fail(tree, path, -EACCES);
    size_t left = command_tree_count_shown(tree, &folder->listing);
    if (tree->as_json)
        json_open(&tree->json, "entries", '[');
    for (size_t i = 0; i < folder->listing.count && !ferror(stdout); i++) {
        const struct union_name *name = &folder->listing.names[i];
        if (name->name[0] == '.' && !tree->all)
            continue;
        tree->last[depth] = --left == 0;
        command_tree_print_entry(tree, folder, name, depth);
    }
    if (tree->as_json)
        json_close(&tree->json, ']');
}

static void command_tree_print_all(struct tree *tree, const struct folder *folder, const char *path)
{
    if (!tree->as_json) {
        describe_print(path);
        putchar('\n');
        command_tree_print_folder(tree, folder, path, 1);
        printf("\n%zu director%s, %zu file%s, %zu of them redirected\n", tree->directories,
               tree->directories == 1 ? "y" : "ies", tree->files, tree->files == 1 ? "" : "s", tree->redirected);
        return;
    }
    json_open(&tree->json, NULL, '{');
    json_text(&tree->json, "name", path);
    json_text(&tree->json, "type", "directory");
    command_tree_print_folder(tree, folder, path, 1);
    json_close(&tree->json, '}');
}

/* A whole tree is read once. */
static struct known *command_tree_know(struct union_root *root)
{
    struct known *known = NULL;
    if (known_create(&known, root, NULL, KNOWN_FIRST) == 0)
        root->source = known_source(known);
    return known;
}

static int command_tree_of(struct tree *tree, const char *path)
{
    struct place place;
    place_init(&place);
    int error = place_find(&place, path, PLACE_FOLLOW | PLACE_ENTER);
    if (error == 0)
        error = place.found ? -ENOTDIR : folder_list(&place.folder, &place.root, 0);
    if (error == 0) {
        tree->root = &place.root;
        tree->root_fd = sys_openat(AT_FDCWD, place.root.path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        error = tree->root_fd < 0 ? tree->root_fd : 0;
    }
    if (error == 0) {
        struct known *known = command_tree_know(&place.root);
        command_tree_print_all(tree, &place.folder, path);
        known_destroy(known);
        sys_close(tree->root_fd);
    } else {
        error_report_path(path, error);
    }
    place_finish(&place);
    return error < 0 ? STATUS_FAILED : tree->status;
}

int command_tree(const struct command *command, int argc, char **argv)
{
    static struct tree tree;
    int option;
    while ((option = command_option(command, argc, argv)) >= 0)
        if (option == 'a')
            tree.all = true;
        else
            tree.as_json = true;
    if (option != COMMAND_END)
        return command_status(option);
    if (argc - optind > 1)
        return error_usage(command, "unexpected argument '%s'", argv[optind + 1]);
    return command_tree_of(&tree, optind < argc ? argv[optind] : ".");
}
