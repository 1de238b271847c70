/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* link: two paths, each under a root or not. Two roots are no hindrance: the new name alone is claimed. */

#include <dirent.h>
#include <errno.h>

#include "base/hook.h"
#include "base/sys.h"
#include "shim/create.h"
#include "shim/claim.h"
#include "shim/operations.h"
#include "shim/root_of.h"
#include "shim/side.h"

#define KIND (STATX_TYPE | STATX_INO | STATX_BTIME)

enum operate_link_where { INSIDE = 1, OUT = 2, IN = 4 };

struct operate_link {
    struct side *from, *to;
    int flags;
    enum operate_link_where where;
    struct statx stat;   /* of the old name */
    bool is_across_seen; /* is_across is known */
    bool is_across;
};

static int operate_link_stat(struct target *t, struct statx *stat)
{
    return (int)TARGET_CALL(t, sys_statx(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW, KIND, stat));
}

static char *operate_link_text(const struct operate_link *l)
{
    return (l->to->is_managed ? l->to : l->from)->target.scratch->text[0];
}

static bool operate_link_ends_in_link(const struct target *t)
{
    return t->slash && t->found.known && t->found.entry.type == DT_LNK;
}

/* The checks. */

static int operate_link_old_lookup(struct operate_link *l)
{
    struct side *from = l->from;
    if (from->is_managed)
        return operate_link_stat(&from->target, &l->stat);
    const int follow = l->flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW;
    return sys_statx(from->at, from->path, (l->flags & AT_EMPTY_PATH) | follow, KIND, &l->stat);
}

static int operate_link_new_parent(struct operate_link *l)
{
    return side_parent_outside(l->to);
}

static bool operate_link_is_new_dots(struct operate_link *l)
{
    return side_ends_in_dots(l->to);
}

static bool operate_link_is_across(struct operate_link *l)
{
    if (!l->is_across_seen)
        l->is_across = side_are_across(l->from, l->to);
    l->is_across_seen = true;
    return l->is_across;
}

static bool operate_link_is_native(struct operate_link *l)
{
    return !operate_link_is_across(l);
}

/* A link that an operation is under way on may be given up by it: what its end is then is waited for. */
static int operate_link_new_settled(struct operate_link *l)
{
    struct target *to = &l->to->target;
    return operate_link_ends_in_link(to) ? target_settled(to) : 0;
}

/* With a slash after it, a link's stat is that of where it leads, and there need be nothing. */
static bool operate_link_is_new_there(struct operate_link *l)
{
    struct target *to = &l->to->target;
    struct statx stat;
    if (!to->found.known)
        return false;
    const bool is_there = operate_link_stat(to, &stat) != -ENOENT;
    return is_there || (operate_link_ends_in_link(to) && to->found.entry.state != RECORD_DYING);
}

static int operate_link_new_lookup(struct operate_link *l)
{
    struct statx stat;
    bool slash;
    int code = side_stat_outside(l->to, operate_link_text(l), &slash, &stat);
    return code == 0 ? -EEXIST : code == -ENOENT && !slash ? 0 : code;
}

static bool operate_link_is_new_slash(struct operate_link *l)
{
    return l->to->target.slash;
}

static bool operate_link_is_across_read_only(struct operate_link *l)
{
    return operate_link_is_across(l) && side_parent_is_read_only(l->to, operate_link_text(l));
}

static bool operate_link_are_file_systems_different(struct operate_link *l)
{
    return l->from->target.root->device != l->to->target.root->device;
}

#define ALL (INSIDE | OUT | IN)
/* The walk ends: linkat itself gives the errors of all rows that follow. */
#define KERNEL_DECIDES 1

/* The order of do_linkat (fs/namei.c of Linux 6.12; the same since 3.10). What vfs_link checks, the calls of the file system
 * say themselves. Flags and unknown ones are wrap_names.c's; the paths under a root have been resolved.
 *
 * `check` answers 0 or the error; `is` answers whether `error` is the one. */
static const struct operate_link_row {
    unsigned where;
    int error;
    int (*check)(struct operate_link *);
    bool (*is)(struct operate_link *);
} operate_link_rows[] = {
    /* filename_lookup of the old path */
    {ALL, .check = operate_link_old_lookup},
    /* filename_create of the new one; a mount that is read-only is told last */
    {OUT, .check = operate_link_new_parent},
    {OUT, .is = operate_link_is_new_dots, .error = -EEXIST},
    {OUT, .is = operate_link_is_native, .error = KERNEL_DECIDES},
    {OUT, .check = operate_link_new_lookup},
    {INSIDE | IN, .check = operate_link_new_settled},
    {INSIDE | IN, .is = operate_link_is_new_there, .error = -EEXIST},
    {INSIDE | IN, .is = operate_link_is_new_slash, .error = -ENOENT},
    {INSIDE | OUT, .is = operate_link_is_across_read_only, .error = -EROFS},
    /* do_linkat: the mounts */
    {INSIDE | OUT, .is = operate_link_is_across, .error = -EXDEV},
    {INSIDE, .is = operate_link_are_file_systems_different, .error = -EXDEV}, /* where the kernel tells no mount */
};

static int operate_link_ask(const struct operate_link_row *row, struct operate_link *l)
{
    if (row->check != NULL)
        return row->check(l);
    return row->is(l) ? row->error : 0;
}

static int operate_link_check(struct operate_link *l)
{
    const size_t count = sizeof operate_link_rows / sizeof *operate_link_rows;
    int code = 0;
    l->is_across_seen = false;
    for (const struct operate_link_row *row = operate_link_rows; code == 0 && row < operate_link_rows + count; row++)
        if (row->where & l->where)
            code = operate_link_ask(row, l);
    return code == KERNEL_DECIDES ? 0 : code;
}

/* The steps. */

static int operate_link_places(struct target *from, struct target *to, int flags)
{
    int code = sys_linkat(from->real_at, from->real_path, to->real_at, to->real_path, flags);
    if (code == -EXDEV && (target_place_by_root(from) || target_place_by_root(to)))
        code = sys_linkat(from->real_at, from->real_path, to->real_at, to->real_path, flags);
    return code;
}

static int operate_link_real(struct side *from, struct target *to, int flags)
{
    if (!from->is_managed)
        return sys_linkat(from->at, from->path, to->real_at, to->real_path, flags);
    int code = target_place(&from->target);
    return code == 0 ? operate_link_places(&from->target, to, flags & ~AT_SYMLINK_FOLLOW) : code;
}

/* The kernel refuses a directory, and says why. */
static int operate_link_reserve(struct operate_link *l)
{
    if (S_ISDIR(l->stat.stx_mode))
        return sys_linkat(l->from->at, l->from->path, l->to->at, l->to->path, l->flags);
    int code = create_reserve(&l->to->target, (uint8_t)IFTODT(l->stat.stx_mode), 0);
    if (code == 0)
        target_refresh(&l->to->target);
    return code;
}

static int operate_link_reserved(struct operate_link *l)
{
    struct side *from = l->from;
    struct target *to = &l->to->target;
    HOOK("link-reserved");
    int code = operate_link_real(from, to, l->flags);
    HOOK("link-made");
    if (code == -ENOENT && BROKEN("link-asks") && target_look(&from->target) != 0)
        code = -EIO;
    if (code == 0)
        create_commit_there(to, (uint8_t)IFTODT(l->stat.stx_mode));
    else
        target_withdraw(to);
    /* Asked about only now: an operation on the old name may wait for the new one, or it is the same. */
    long result = code;
    return from->is_managed && target_recheck(&from->target, &result) ? TARGET_RETRY : (int)result;
}

static int operate_link_once(struct operate_link *l)
{
    int code = operate_link_check(l);
    HOOK("link-found");
    if (code == 0)
        code = operate_link_reserve(l);
    return code == 0 && !S_ISDIR(l->stat.stx_mode) ? operate_link_reserved(l) : code;
}

static int operate_link_out(struct operate_link *l)
{
    struct target *from = &l->from->target;
    const struct side *to = l->to;
    int code = operate_link_check(l);
    if (code != 0)
        return code;
    return (int)TARGET_CALL(from, sys_linkat(from->real_at, from->real_path, to->at, to->path, l->flags & ~AT_SYMLINK_FOLLOW));
}

/* What the call has is given back before a signal comes in, whose handler may leave it (siglongjmp). */
static int operate_link_alone(struct operate_link *l)
{
    const int code = operate_link_once(l);
    if (code != TARGET_RETRY) {
        side_done(l->from);
        side_done(l->to);
    }
    return code;
}

/* The new name is not ours by now. */
static int operate_link_elsewhere(struct operate_link *l)
{
    int code;
    if (l->where == INSIDE) {
        l->where = OUT;
        l->is_across_seen = false;
        code = operate_link_out(l);
    } else {
        code = sys_linkat(l->from->at, l->from->path, l->to->at, l->to->path, l->flags);
    }
    side_done(l->from);
    return code;
}

int operate_link(struct side *from, struct side *to, int flags)
{
    struct operate_link link = {.from = from,
                                .to = to,
                                .flags = flags,
                                .where = !from->is_managed ? IN
                                         : !to->is_managed ? OUT
                                                           : INSIDE};
    int code;
    if (link.where == OUT)
        code = operate_link_out(&link);
    else
        do
            code = CLAIM_UNINTERRUPTED(operate_link_alone(&link));
        while (code == TARGET_RETRY && (code = side_follow_again(to, TARGET_RETRY)) == TARGET_RETRY);
    if (code == SIDE_FOREIGN)
        return operate_link_elsewhere(&link);
    side_done(from);
    side_done(to);
    return code;
}
