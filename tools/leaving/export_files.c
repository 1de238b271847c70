/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "cli/command.h"
#include "cli/stopping.h"
#include "leaving/copy.h"
#include "leaving/export_state.h"
#include "union/layout.h"

/* Will it be so everywhere? */
static bool export_is_hopeless(int error)
{
    return error == -EXDEV || error == -EROFS || error == -ENOSPC || error == -EDQUOT;
}

void export_turn(struct export *export, int milliseconds)
{
    const uint64_t files = export->owners.files, looked = export->owners.looked;
    export_owners_turn(&export->owners, &export->root, milliseconds);
    export->files += export->owners.files - files;
    export->looked += export->owners.looked - looked;
    export_show_progress(export);
}

void export_turn_if_due(struct export *export)
{
    if (export_owners_are_due(&export->owners))
        export_turn(export, 0);
    else
        export_show_progress(export);
}

/* -ECANCELED: refused after a complaint, and left where it is; the others go on. */
static int export_copy_file(struct export *export, const char *where, const struct folder *folder,
                            const struct union_name *name)
{
    int answer = copy_into(export->leaf_fd, name->on_disk, folder->fd, name->name);
    export->copied += answer == 0;
    if (answer <= 0)
        return answer;
    progress_finish(&export->progress);
    error_report("%s: %s", where, copy_words((enum copy_refusal)answer));
    export->failed = true;
    return -ECANCELED;
}

/* Takes those out of the leaf that are in the trunk by now. */
static void export_unlink_linked(struct export *export, const struct folder *folder)
{
    char where[PATH_MAX];
    for (size_t i = 0; i < export->linked_count; i++) {
        const struct union_name *name = export->linked[i];
        int error = sys_unlinkat(export->leaf_fd, name->on_disk, 0);
        if (error == 0 || error == -ENOENT)
            continue;
        export_fail(export, folder_where(folder, &export->root, name, where, sizeof where) == 0 ? where : name->name, error);
        export->hopeless |= export_is_hopeless(error);
        export->stays = true;
    }
    export->linked_count = 0;
}

static void export_close_leaf(struct export *export, const struct folder *folder)
{
    export_unlink_linked(export, folder);
    if (export->leaf_fd >= 0)
        sys_close(export->leaf_fd);
    export->leaf_fd = -1;
}

/* Has its owner renamed it since the directory was listed again? A look at its new name would then find it. */
static bool export_has_left(const struct export *export, const struct union_name *name)
{
    struct statx stat;
    return export->aside != NULL && export_aside_was_ordered(export->aside, name) &&
           sys_statx(export->leaf_fd, name->on_disk, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == -ENOENT;
}

/* The leaf of one file, kept for those after it. A file system that is asked for each part of a path is asked for the names
 * alone; and those who may write below .shunt cannot make it another place once it is open. */
static int export_open_leaf(struct export *export, const struct folder *folder, const struct union_name *name)
{
    char path[PATH_MAX];
    struct text t;
    if (export->leaf_fd >= 0 && export->branch == name->branch && export->leaf == name->leaf)
        return 0;
    export_close_leaf(export, folder);
    text_init(&t, path, sizeof path);
    layout_leaf(&t, "", export->root.branches[name->branch - 1], folder->listing.marker.mirror, name->leaf);
    export->leaf_fd = text_ok(&t) ? disk_open_below(export->root.path, path + 1) : -ENAMETOOLONG;
    export->branch = name->branch;
    export->leaf = name->leaf;
    return export->leaf_fd < 0 ? export->leaf_fd : 0;
}

static int export_move_file(struct export *export, const char *where, const struct folder *folder,
                            const struct union_name *name)
{
    struct disk_rename *renaming = &export->renaming;
    int error = export_open_leaf(export, folder, name);
    if (error == 0 && export_has_left(export, name))
        error = -ENOENT;
    else if (error == 0 && export->aside != NULL && strcmp(name->name, name->on_disk) != 0) /* it lost a conflict since then */
        error = -EEXIST;
    if (error < 0)
        return error;
    error = disk_rename_next(renaming, export->leaf_fd, name->on_disk, folder->fd, name->name);
    export->looked += error == 0 && renaming->unknown && !renaming->linked;
    if (renaming->linked)
        export->linked[export->linked_count++] = name;
    if (export->linked_count == EXPORT_LINKED_MAX)
        export_unlink_linked(export, folder);
    return error == -EXDEV && export->options->copy ? export_copy_file(export, where, folder, name) : error;
}

/* Has another program removed the directory? What was its is an orphan then. */
static bool export_is_gone(const struct folder *folder)
{
    char path[PATH_MAX];
    return disk_canonical(folder->fd, path, sizeof path) == -ENOENT;
}

/* What the trunk's file of that name is to be called, since it lost a conflict and could not be renamed; NULL: there is none.
 */
static const char *export_loser_of(const struct folder *folder, const struct union_name *name)
{
    for (size_t i = 0; i < folder->listing.count; i++) {
        const struct union_name *other = &folder->listing.names[i];
        if (other->branch == 0 && strcmp(other->on_disk, name->name) == 0 && strcmp(other->name, other->on_disk) != 0)
            return other->name;
    }
    return NULL;
}

static void export_complain_exists(struct export *export, const char *where, const struct folder *folder,
                                   const struct union_name *name)
{
    const char *loser = export_loser_of(folder, name);
    if (loser != NULL)
        export_complain_loser(export, where, loser);
    else
        export_complain_appeared(export, where);
}

/* One file. 0, also if it ended by itself; -ENOENT: its directory did; else -errno after a complaint. */
static int export_file(struct export *export, const struct folder *folder, const struct union_name *name)
{
    char where[PATH_MAX];
    int error = folder_where(folder, &export->root, name, where, sizeof where);
    if (error == 0 && !export->options->dry_run)
        error = export_move_file(export, where, folder, name);
    if (error == -EPERM && disk_is_fixed(export->leaf_fd, name->on_disk))
        error = export_complain_fixed(export, where);
    if (error == -EPERM && disk_is_fixed(folder->fd, ""))
        export_complain_fixed_directory(export, folder);
    else if (error == -EEXIST)
        export_complain_exists(export, where, folder, name);
    else if (error == -EXDEV)
        export_complain_across(export, where);
    else if (error < 0 && error != -ENOENT && error != -ECANCELED && !(error == -EINTR && stopping()))
        export_fail(export, where, error);
    export->hopeless |= export_is_hopeless(error);
    export->files += error == 0;
    export_turn_if_due(export);
    return error == -ENOENT && (export->options->dry_run || !export_is_gone(folder)) ? 0 : error;
}

static int export_compare_leaves(const void *a, const void *b)
{
    const struct union_name *one = *(const struct union_name *const *)a, *other = *(const struct union_name *const *)b;
    if (one->branch != other->branch)
        return one->branch < other->branch ? -1 : 1;
    if (one->leaf != other->leaf)
        return one->leaf < other->leaf ? -1 : 1;
    return one < other ? -1 : 1;
}

/* What is redirected, one leaf after the other: malloc'ed, NULL without memory. */
static const struct union_name **export_order_by_leaf(const struct listing *listing, size_t *count)
{
    const struct union_name **names = malloc((listing->count + 1) * sizeof *names);
    *count = 0;
    for (size_t i = 0; i < listing->count && names != NULL; i++)
        if (listing->names[i].branch > 0)
            names[(*count)++] = &listing->names[i];
    if (names != NULL)
        qsort(names, *count, sizeof *names, export_compare_leaves);
    return names;
}

int export_files(struct export *export, const struct folder *folder)
{
    size_t count;
    const struct union_name **names = export_order_by_leaf(&folder->listing, &count);
    int error = names != NULL ? 0 : -ENOMEM;
    export->stays = false;
    for (size_t i = 0; i < count && (error == 0 || error == -ECANCELED); i++) {
        error = stopping() ? -EINTR : export_file(export, folder, names[i]);
        export->stays |= error == -ECANCELED;
    }
    export_close_leaf(export, folder);
    free(names);
    return error == 0 && export->stays ? -ECANCELED : error;
}
