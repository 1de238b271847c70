/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "shim/wrap.h"
#include "shim/walk.h"
#include "shim/walk_tree.h"

/* Opening and closing. */

static FTSENT *walk_fts_start_new(FTS *tree, FTSENT *parent, const char *path)
{
    if (path[0] == '\0')
        return wrap_answer(-ENOENT), NULL;
    FTSENT *start = entry_new(tree, path, strlen(path));
    if (start == NULL)
        return NULL;
    start->fts_level = FTS_ROOTLEVEL;
    start->fts_parent = parent;
    start->fts_accpath = start->fts_name;
    start->fts_info = entry_look(tree, start, tree_has(tree, FTS_COMFOLLOW));
    if (start->fts_info == FTS_DOT)
        start->fts_info = FTS_D;
    return start;
}

/* Starts in the order given, or, for the comparison to sort them, the other way round. */
static int walk_fts_starts_add(FTS *tree, FTSENT *parent, char *const *paths)
{
    FTSENT *before = tree->fts_cur, **end = &before->fts_link;
    size_t count = 0;
    for (; paths[count] != NULL; count++) {
        FTSENT *start = walk_fts_start_new(tree, parent, paths[count]);
        if (start == NULL)
            return -1;
        start->fts_link = *end;
        *end = start;
        end = tree->fts_compar != NULL ? end : &start->fts_link;
    }
    before->fts_link = entries_sorted(tree, before->fts_link, count);
    return 0;
}

/* As if the walk had just told an entry before the starts. */
static int walk_fts_starts_init(FTS *tree, char *const *paths)
{
    FTSENT *parent = entry_new(tree, "", 0);
    tree->fts_cur = parent;
    if (parent == NULL)
        return -1;
    parent->fts_level = FTS_ROOTPARENTLEVEL;
    FTSENT *before = entry_new(tree, "", 0);
    if (before == NULL)
        return -1;
    before->fts_info = FTS_INIT;
    before->fts_parent = parent;
    tree->fts_cur = before;
    return walk_fts_starts_add(tree, parent, paths);
}

static size_t walk_fts_longest(char *const *paths)
{
    size_t most = PATH_MAX;
    for (; *paths != NULL; paths++)
        if (strlen(*paths) + 1 > most)
            most = strlen(*paths) + 1;
    return most;
}

static void walk_fts_tree_free(FTS *tree)
{
    FTSENT *entry = tree->fts_cur;
    tree_free_children(tree);
    while (entry != NULL) {
        FTSENT *next = entry_after(entry);
        free(entry);
        entry = next;
    }
    free(tree->fts_path);
    free(tree);
}

FTS *walk_fts_open(char *const *paths, int options, shim_fts_order *order)
{
    FTS *tree = options & ~FTS_OPTIONMASK ? (wrap_answer(-EINVAL), NULL) : calloc(1, sizeof *tree);
    if (tree == NULL)
        return NULL;
    tree->fts_options = options | (options & FTS_LOGICAL ? FTS_NOCHDIR : 0);
    tree->fts_compar = (int (*)(const void *, const void *))order;
    if (path_grow(tree, walk_fts_longest(paths), NULL) != 0 || walk_fts_starts_init(tree, paths) != 0) {
        int saved = errno;
        walk_fts_tree_free(tree);
        errno = saved;
        return NULL;
    }
    if (!tree_has(tree, FTS_NOCHDIR) && (tree->fts_rfd = tree_open_directory(".")) < 0)
        tree->fts_options |= FTS_NOCHDIR; /* there would be no way back */
    return tree;
}

int walk_fts_close(FTS *tree)
{
    int result = 0, saved = errno;
    if (!tree_has(tree, FTS_NOCHDIR)) {
        result = tree_go(tree, tree->fts_rfd);
        saved = result != 0 ? errno : saved;
        sys_close(tree->fts_rfd);
    }
    walk_fts_tree_free(tree);
    errno = saved;
    return result;
}

/* Going on. */

/* Follows the link at an entry; through it there is no way back but a descriptor. */
static void walk_fts_follow(const FTS *tree, FTSENT *entry)
{
    entry->fts_info = entry_look(tree, entry, true);
    if (entry->fts_info != FTS_D || tree_has(tree, FTS_NOCHDIR))
        return;
    entry->fts_symfd = tree_open_directory(".");
    if (entry->fts_symfd >= 0) {
        entry->fts_flags |= FTS_SYMFOLLOW;
    } else {
        entry->fts_errno = errno;
        entry->fts_info = FTS_ERR;
    }
}

static FTSENT *walk_fts_pass_by(FTS *tree, FTSENT *directory)
{
    if (directory->fts_flags & FTS_SYMFOLLOW)
        sys_close(directory->fts_symfd);
    tree_free_children(tree);
    directory->fts_info = FTS_DP;
    return directory;
}

/* Enters a directory whose children were read before. If that fails, the children are told all the same, and
 * the error at the directory's end. */
static void walk_fts_enter_read(FTS *tree, FTSENT *directory)
{
    if (tree_go_by_path(tree, directory, directory->fts_accpath) == 0)
        return;
    directory->fts_errno = errno;
    directory->fts_flags |= FTS_DONTCHDIR;
    for (FTSENT *child = tree->fts_child; child != NULL; child = child->fts_link)
        child->fts_accpath = directory->fts_accpath;
}

static FTSENT *walk_fts_descend(FTS *tree, FTSENT *directory)
{
    if (tree->fts_child != NULL && tree_has(tree, FTS_NAMEONLY)) {
        tree->fts_options &= ~FTS_NAMEONLY;
        tree_free_children(tree);
    }
    FTSENT *child = tree->fts_child;
    if (child != NULL)
        walk_fts_enter_read(tree, directory);
    else
        child = tree_read(tree, TO_DESCEND);
    if (child == NULL)
        return tree_has(tree, FTS_STOP) ? NULL : directory;
    tree->fts_child = NULL;
    tree->fts_cur = child;
    return path_to(tree, child);
}

static int walk_fts_leave(const FTS *tree, const FTSENT *directory)
{
    if (directory->fts_level == FTS_ROOTLEVEL)
        return tree_go(tree, tree->fts_rfd);
    if (directory->fts_flags & FTS_SYMFOLLOW) {
        int result = tree_go(tree, directory->fts_symfd);
        sys_close(directory->fts_symfd);
        return result;
    }
    return directory->fts_flags & FTS_DONTCHDIR ? 0 : tree_go_by_path(tree, directory->fts_parent, "..");
}

/* The last of its siblings was told: back to their parent. */
static FTSENT *walk_fts_ascend(FTS *tree, FTSENT *last)
{
    FTSENT *parent = last->fts_parent;
    free(last);
    tree->fts_cur = parent;
    if (parent->fts_level == FTS_ROOTPARENTLEVEL) {
        free(parent);
        tree->fts_cur = NULL;
        errno = 0; /* which tells the end from an error */
        return NULL;
    }
    tree->fts_path[parent->fts_pathlen] = '\0';
    if (walk_fts_leave(tree, parent) != 0)
        return tree_stop(tree);
    parent->fts_info = parent->fts_errno != 0 ? FTS_ERR : FTS_DP;
    return parent;
}

static FTSENT *walk_fts_next_start(FTS *tree, FTSENT *start)
{
    return tree_go(tree, tree->fts_rfd) == 0 ? path_to_start(tree, start) : tree_stop(tree);
}

static FTSENT *walk_fts_go_on(FTS *tree, FTSENT *told)
{
    do {
        FTSENT *next = told->fts_link;
        if (next == NULL)
            return walk_fts_ascend(tree, told);
        tree->fts_cur = next;
        free(told);
        if (next->fts_level == FTS_ROOTLEVEL)
            return walk_fts_next_start(tree, next);
        told = next;
    } while (told->fts_instr == FTS_SKIP);
    if (told->fts_instr == FTS_FOLLOW) {
        walk_fts_follow(tree, told);
        told->fts_instr = FTS_NOINSTR;
    }
    return path_to(tree, told);
}

FTSENT *walk_fts_read(FTS *tree)
{
    FTSENT *told = tree->fts_cur;
    if (told == NULL || tree_has(tree, FTS_STOP))
        return NULL;
    int wish = told->fts_instr;
    told->fts_instr = FTS_NOINSTR;
    if (wish == FTS_AGAIN) {
        told->fts_info = entry_look(tree, told, false);
        return told;
    }
    if (wish == FTS_FOLLOW && (told->fts_info == FTS_SL || told->fts_info == FTS_SLNONE)) {
        walk_fts_follow(tree, told);
        return told;
    }
    if (told->fts_info != FTS_D)
        return walk_fts_go_on(tree, told);
    bool is_on_other_device = tree_has(tree, FTS_XDEV) && told->fts_dev != tree->fts_dev;
    return wish == FTS_SKIP || is_on_other_device ? walk_fts_pass_by(tree, told) : walk_fts_descend(tree, told);
}

int walk_fts_set(FTSENT *entry, int instruction)
{
    if (instruction != 0 && instruction != FTS_AGAIN && instruction != FTS_FOLLOW && instruction != FTS_NOINSTR &&
        instruction != FTS_SKIP) {
        errno = EINVAL;
        return 1;
    }
    entry->fts_instr = (unsigned short)instruction;
    return 0;
}

/* The children of a start that is known by a relative path are read from where the walk was opened, and
 * fts_read will want to be there again. */
static FTSENT *walk_fts_read_from_here(FTS *tree, enum tree_purpose purpose)
{
    int here = tree_open_directory(".");
    if (here < 0)
        return NULL;
    tree->fts_child = tree_read(tree, purpose);
    int result = fchdir(here);
    sys_close(here);
    return result == 0 ? tree->fts_child : NULL;
}

FTSENT *walk_fts_children(FTS *tree, int options)
{
    FTSENT *of = tree->fts_cur;
    if (options != 0 && options != FTS_NAMEONLY)
        return wrap_answer(-EINVAL), NULL;
    errno = 0; /* which tells an empty directory from an error */
    if (of == NULL || tree_has(tree, FTS_STOP))
        return NULL;
    if (of->fts_info == FTS_INIT)
        return of->fts_link;
    if (of->fts_info != FTS_D)
        return NULL;
    tree_free_children(tree);
    tree->fts_options |= options;
    enum tree_purpose purpose = options == FTS_NAMEONLY ? TO_TELL_NAMES : TO_TELL;
    if (of->fts_level == FTS_ROOTLEVEL && of->fts_accpath[0] != '/' && !tree_has(tree, FTS_NOCHDIR))
        return walk_fts_read_from_here(tree, purpose);
    tree->fts_child = tree_read(tree, purpose);
    return tree->fts_child;
}
