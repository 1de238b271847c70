/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/rename_checks.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "base/text.h"
#include "shim/root_of.h"
#include "shim/side.h"
#include "union/identity.h"

bool rename_checks_is_same_name(const struct rename *r)
{
    const struct target *a = &r->from->target, *b = &r->to->target;
    return dirid_equal(a->dir, b->dir) && a->length == b->length && memcmp(a->name, b->name, a->length) == 0;
}

/* The parents of the paths, and how they are reached. */

static int rename_checks_old_parent(struct rename *r)
{
    return side_parent_outside(r->from);
}

static int rename_checks_new_parent(struct rename *r)
{
    return side_parent_outside(r->to);
}

static bool rename_checks_are_mounts_different(struct rename *r)
{
    return side_are_across(r->from, r->to);
}

static bool rename_checks_are_file_systems_different(struct rename *r)
{
    return r->from->target.root->device != r->to->target.root->device;
}

static bool rename_checks_is_old_dots(struct rename *r)
{
    return side_ends_in_dots(r->from);
}

static bool rename_checks_is_new_dots_kept(struct rename *r)
{
    return (r->flags & RENAME_NOREPLACE) && side_ends_in_dots(r->to);
}

static bool rename_checks_is_new_dots(struct rename *r)
{
    return side_ends_in_dots(r->to);
}

/* What is there. */

static int rename_checks_old_lookup(struct rename *r)
{
    return r->old.error;
}

static int rename_checks_new_lookup(struct rename *r)
{
    return r->new.error != -ENOENT ? r->new.error : 0;
}

static bool rename_checks_is_new_kept(struct rename *r)
{
    return (r->flags & RENAME_NOREPLACE) && r->new.error == 0;
}

static bool rename_checks_is_new_kept_from_whiteout(struct rename *r)
{
    return (r->flags & RENAME_WHITEOUT) && rename_checks_is_new_kept(r);
}

static bool rename_checks_is_partner_missing(struct rename *r)
{
    return (r->flags & RENAME_EXCHANGE) && r->new.error != 0;
}

/* What kind it is. */

static bool rename_checks_is_partner_no_directory(struct rename *r)
{
    return (r->flags & RENAME_EXCHANGE) && r->new.slash && r->new.type != DT_DIR;
}

static bool rename_checks_is_old_no_directory(struct rename *r)
{
    return r->old.type != DT_DIR && (r->old.slash || (r->new.slash && !(r->flags & RENAME_EXCHANGE)));
}

/* Does `to` lie in the directory at `from`, or deeper? Climbs from its parent to the root. */
static bool rename_checks_lies_in(struct target *to, struct target *from)
{
    struct statx stat, above;
    struct text text;
    text_init(&text, to->scratch->text[0], PATH_MAX);
    text_bytes(&text, to->path, to->parent_length);
    text_add(&text, ".");
    if (root_of_stat(from->root, from->at, from->path, &stat) != 0)
        return false;
    struct dirid id = dirid_of(&stat), at = to->dir;
    while (!dirid_equal(at, id) && !dirid_equal(at, to->root->id)) {
        text_add(&text, "/..");
        if (!text_ok(&text) || identity_stat(to->root->id, to->at, text.at, 0, &above) != 0)
            return false;
        at = dirid_of(&above);
    }
    return dirid_equal(at, id);
}

/* In one directory neither can be above the other. */
static bool rename_checks_is_parent_same(const struct rename *r)
{
    return dirid_equal(r->from->target.dir, r->to->target.dir);
}

static bool rename_checks_is_old_above_new(struct rename *r)
{
    return r->old.type == DT_DIR && !rename_checks_is_parent_same(r) && rename_checks_lies_in(&r->to->target, &r->from->target);
}

static bool rename_checks_is_new_above_old(struct rename *r)
{
    return r->new.type == DT_DIR && !rename_checks_is_parent_same(r) && rename_checks_lies_in(&r->from->target, &r->to->target);
}

static bool rename_checks_is_partner_above_old(struct rename *r)
{
    return (r->flags & RENAME_EXCHANGE) && rename_checks_is_new_above_old(r);
}

/* A directory would leave its mirrors where they are. */
static bool rename_checks_moves_a_directory(struct rename *r)
{
    return r->old.type == DT_DIR || ((r->flags & RENAME_EXCHANGE) && r->new.type == DT_DIR);
}

/* A directory onto a file that is in a branch, where the trunk has nothing of that name. */
static bool rename_checks_is_onto_file(struct rename *r)
{
    return !(r->flags & RENAME_EXCHANGE) && r->old.type == DT_DIR && target_is_away(&r->to->target);
}

/* A file from outside, or from another root, onto a directory, whose name is not to be held for it. */
static bool rename_checks_is_onto_directory(struct rename *r)
{
    return r->new.type == DT_DIR;
}

/* A device in a leaf, where only regular files are: refused as by a file system that has no whiteouts. */
static bool rename_checks_is_whiteout(struct rename *r)
{
    return (r->flags & RENAME_WHITEOUT) != 0;
}

static bool rename_checks_is_a_parent_kept(struct rename *r)
{
    char *text = r->to->target.scratch->text[0];
    return !side_parent_is_writable(r->from, text) || !side_parent_is_writable(r->to, text);
}

static bool rename_checks_is_forbidden_onto_file(struct rename *r)
{
    return rename_checks_is_onto_file(r) && rename_checks_is_a_parent_kept(r);
}

static bool rename_checks_is_forbidden_onto_directory(struct rename *r)
{
    return rename_checks_is_onto_directory(r) && rename_checks_is_a_parent_kept(r);
}

enum rename_checks_stage { PATHS, FOUND }; /* of rename_checks_paths and rename_checks_found */

/* The home of the names gives that error, or it knows better: the walk ends, and the rename goes on to it. */
#define HOME_DECIDES 1

#define INSIDE RENAME_INSIDE
#define OUT RENAME_OUT
#define IN RENAME_IN
#define BETWEEN RENAME_BETWEEN
#define ALL (INSIDE | OUT | IN | BETWEEN)

/* The order of do_renameat2 and vfs_rename (fs/namei.c of Linux 6.12; the same since 3.15). Left out is what the calls of the
 * file system say themselves. Flags and unknown ones are wrap_names.c's; the paths under a root have been resolved.
 *
 * `check` answers 0 or the error; `is` answers whether `error` is the one. */
static const struct rename_checks_row {
    uint8_t stage, where;
    int error;
    int (*check)(struct rename *);
    bool (*is)(struct rename *);
} rename_checks_rows[] = {
    /* do_renameat2: filename_parentat of both, the mounts, the last components */
    {PATHS, IN, .check = rename_checks_old_parent},
    {PATHS, OUT, .check = rename_checks_new_parent},
    {PATHS, ALL, .is = rename_checks_are_mounts_different, .error = -EXDEV},
    {PATHS, BETWEEN, .is = rename_checks_are_file_systems_different, .error = -EXDEV}, /* where the kernel tells no mount */
    {PATHS, IN, .is = rename_checks_is_old_dots, .error = -EBUSY},
    {PATHS, OUT, .is = rename_checks_is_new_dots_kept, .error = -EEXIST},
    {PATHS, OUT, .is = rename_checks_is_new_dots, .error = -EBUSY},
    /* do_renameat2: the lookup of both. An old name that is not there is renamed natively on the way out. */
    {FOUND, INSIDE | IN | BETWEEN, .check = rename_checks_old_lookup},
    {FOUND, OUT, .check = rename_checks_new_lookup},
    {FOUND, INSIDE, .is = rename_checks_is_new_kept_from_whiteout, .error = -EEXIST},
    {FOUND, INSIDE, .is = rename_checks_is_new_kept, .error = HOME_DECIDES},
    {FOUND, OUT | IN | BETWEEN, .is = rename_checks_is_new_kept, .error = -EEXIST},
    {FOUND, INSIDE, .is = rename_checks_is_partner_missing, .error = HOME_DECIDES},
    {FOUND, OUT | IN | BETWEEN, .is = rename_checks_is_partner_missing, .error = -ENOENT},
    {FOUND, ALL, .is = rename_checks_is_partner_no_directory, .error = -ENOTDIR},
    {FOUND, ALL, .is = rename_checks_is_old_no_directory, .error = -ENOTDIR},
    /* do_renameat2: `trap`, the one that is above the other. Where one side is outside, the kernel meets it. */
    {FOUND, INSIDE, .is = rename_checks_is_old_above_new, .error = -EINVAL},
    {FOUND, INSIDE, .is = rename_checks_is_partner_above_old, .error = -EINVAL},
    {FOUND, INSIDE, .is = rename_checks_is_new_above_old, .error = -ENOTEMPTY},
    /* the edge of a root, as between two mounts: mv copies */
    {FOUND, OUT | IN | BETWEEN, .is = rename_checks_moves_a_directory, .error = -EXDEV},
    /* vfs_rename: may_delete, first of the parents, then of the kinds */
    {FOUND, INSIDE, .is = rename_checks_is_forbidden_onto_file, .error = -EACCES},
    {FOUND, INSIDE, .is = rename_checks_is_onto_file, .error = -ENOTDIR},
    {FOUND, IN | BETWEEN, .is = rename_checks_is_forbidden_onto_directory, .error = -EACCES},
    {FOUND, IN | BETWEEN, .is = rename_checks_is_onto_directory, .error = -EISDIR},
    /* vfs_rename: the file system's own rename */
    {FOUND, ALL, .is = rename_checks_is_whiteout, .error = -EINVAL},
};

static int rename_checks_ask(const struct rename_checks_row *row, struct rename *r)
{
    if (row->check != NULL)
        return row->check(r);
    return row->is(r) ? row->error : 0;
}

static int rename_checks_walk(struct rename *r, enum rename_checks_stage stage)
{
    const size_t count = sizeof rename_checks_rows / sizeof *rename_checks_rows;
    int code = 0;
    for (const struct rename_checks_row *row = rename_checks_rows; code == 0 && row < rename_checks_rows + count; row++)
        if (row->stage == stage && (row->where & r->where))
            code = rename_checks_ask(row, r);
    return code == HOME_DECIDES ? 0 : code;
}

int rename_checks_paths(struct rename *r)
{
    return rename_checks_walk(r, PATHS);
}

static bool rename_checks_was_replaced(struct side *side)
{
    return side->is_managed && target_was_replaced(&side->target);
}

int rename_checks_found(struct rename *r)
{
    const int code = rename_checks_walk(r, FOUND);
    if (code == 0)
        return 0;
    const bool was_old = rename_checks_was_replaced(r->from), was_new = rename_checks_was_replaced(r->to);
    return was_old || was_new ? TARGET_RETRY : code;
}
