/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* unlink and rmdir. */

#include <errno.h>
#include <stdio.h>

#include "base/hook.h"
#include "base/sys.h"
#include "shim/claim.h"
#include "shim/operations.h"
#include "shim/root_of.h"

/* It is not there any more, and its home may be another one by now, which has seen it and is not told. */
static int operate_remove_forget_gone(struct target *t)
{
    target_withdraw(t);
    target_forget(t);
    return 0;
}

/* That nothing is there is what this node's kernel says: the home's node looks, too, before the name leaves any index. */
static int operate_remove_missing(struct target *t, long code)
{
    target_withdraw(t);
    if (target_was_away(t))
        return target_has_moved(t, &code) ? TARGET_RETRY : (int)code;
    int looked = target_look(t);
    if (looked == 0)
        looked = target_settled(t);
    if (looked != 0)
        return target_cannot_tell(looked) ? looked : (int)code;
    return target_recheck(t, &code) ? TARGET_RETRY : (int)code;
}

static int operate_remove_unlink_held(struct target *t)
{
    struct message gone = {.type = MESSAGE_UNLINKED};
    bool leaf_holds;
    long code = claim_name(t, MESSAGE_UNLINK);
    if (code != 0)
        return (int)code;
    target_come_to_leaf(t);
    do {
        HOOK("remove-held");
        code = sys_unlinkat(t->real_at, t->real_path, 0);
        leaf_holds = target_leaf_holds(t);
    } while (target_goes_on(t, code));
    HOOK("remove-done");
    if (code == 0 && !leaf_holds)
        return operate_remove_forget_gone(t);
    if (code == -ENOENT && !BROKEN("missing-is-gone"))
        return operate_remove_missing(t, code);
    if (code == 0 || code == -ENOENT)
        target_tell(t, &gone);
    else
        target_withdraw(t);
    return (int)code;
}

static int operate_remove_unlink_known(struct target *t)
{
    int code;
    HOOK("unlink-found");
    if (BROKEN("unlink-unheld") && !t->found.known)
        return sys_unlinkat(t->at, t->path, 0);
    do {
        code = t->unasked ? 0 : claim_know(t);
        if (code == -ENOENT && target_parent_is_read_only(t))
            code = -EROFS;
        if (code == 0)
            code = operate_remove_unlink_held(t);
        if (code == MESSAGE_ABSENT && (code = target_look(t)) == 0)
            code = TARGET_RETRY;
    } while (code == TARGET_RETRY && !t->unseen);
    return code;
}

/* What the call has is given back before a signal comes in, whose handler may leave it (siglongjmp). */
static int operate_remove_unlink_alone(struct target *t)
{
    const int code = operate_remove_unlink_known(t);
    if (code != TARGET_RETRY)
        target_done(t);
    return code;
}

/* A name that is being replaced has the type of what was there before: it is waited for. */
static int operate_remove_unlink_here(struct target *t)
{
    int code = target_settled(t);
    if (code == 0 && target_is_away(t) && t->slash) /* the slash is part of the place: ENOTDIR, or ENOENT */
        code = (int)TARGET_CALL(t, sys_unlinkat(t->real_at, t->real_path, 0));
    else if (code == 0 && t->slash)
        code = sys_unlinkat(t->at, t->path, 0);
    else if (code == 0)
        code = CLAIM_UNINTERRUPTED(operate_remove_unlink_alone(t));
    return code;
}

/* Until its path leads to the directory where the name is held; what it leads to then may not be ours. Where this node's
 * kernel, or its daemon, remembers what has gone since, or another is there by now, there was nothing in between. */
static int operate_remove_until_there(struct target *t, int (*here)(struct target *), int flags)
{
    const int at = t->at;
    const char *path = t->path;
    int code, how = TARGET_MANAGED;
    do
        code = (int)target_gone(t, here(t));
    while (code == TARGET_RETRY && (how = target_follow_again(t)) == TARGET_MANAGED);
    target_done(t);
    return how == TARGET_MANAGED ? code : how < 0 ? how : sys_unlinkat(at, path, flags);
}

int operate_unlink(struct target *t)
{
    return operate_remove_until_there(t, operate_remove_unlink_here, 0);
}

/* Its name is held. */
static int operate_remove_rmdir_held(struct target *t)
{
    struct message gone = {.type = MESSAGE_UNLINKED};
    HOOK("rmdir-held");
    int code = sys_unlinkat(t->real_at, t->real_path, AT_REMOVEDIR);
    HOOK("rmdir-done");
    if (code == 0)
        target_tell(t, &gone);
    else
        target_withdraw(t);
    return code;
}

/* Of one with names the kernel says so, unless another error comes first. -ESTALE: another one is there. */
static int operate_remove_rmdir_directory(struct target *t, const struct statx *stat)
{
    int code = claim_directory(t, stat);
    if (code == MESSAGE_NOT_EMPTY) {
        HOOK("rmdir-not-empty");
        code = claim_name_of_directory(t, dirid_of(stat));
    }
    return code != 0 ? code : operate_remove_rmdir_held(t);
}

/* What is no directory: the kernel says so, unless another error comes first. */
static int operate_remove_rmdir_other(struct target *t)
{
    struct statx stat;
    int code = claim_found(t);
    if (code != 0)
        return code;
    if (sys_statx(t->real_at, target_without_slash(t), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) != 0 || !S_ISDIR(stat.stx_mode))
        return operate_remove_rmdir_held(t);
    target_withdraw(t);
    return TARGET_RETRY;
}

/* The trunk has no directory of that name; a file in a branch, unless it is just being removed, is none. */
static int operate_remove_rmdir_no_directory(struct target *t, int code)
{
    const int settled = target_settled(t);
    if (settled != 0)
        return settled;
    if (target_is_away(t))
        return target_parent_is_writable(t) ? -ENOTDIR : -EACCES;
    HOOK("rmdir-no-directory");
    if (code == -ENOENT)
        return target_parent_is_read_only(t) ? -EROFS : code;
    return code == 0 ? operate_remove_rmdir_other(t) : sys_unlinkat(t->real_at, t->real_path, AT_REMOVEDIR);
}

static int operate_remove_rmdir_settled(struct target *t)
{
    struct statx stat;
    int code = target_place_at(t, NULL, 0);
    if (code == 0 && (code = target_pin(t)) == TARGET_RETRY)
        return code;
    HOOK("rmdir-pinned");
    if (code == 0) /* `link/` is ENOTDIR, whatever it points at */
        code = root_of_stat(t->root, t->real_at, target_without_slash(t), &stat);
    if (code == 0 && S_ISDIR(stat.stx_mode))
        code = dirid_equal(dirid_of(&stat), t->root->id) ? -EBUSY : operate_remove_rmdir_directory(t, &stat);
    else
        code = operate_remove_rmdir_no_directory(t, code);
    if (code != TARGET_RETRY)
        target_done(t);
    return code;
}

static int operate_remove_rmdir_here(struct target *t)
{
    const int code = target_settled(t);
    return code == 0 ? CLAIM_UNINTERRUPTED(operate_remove_rmdir_settled(t)) : code;
}

int operate_rmdir(struct target *t)
{
    return operate_remove_until_there(t, operate_remove_rmdir_here, AT_REMOVEDIR);
}
