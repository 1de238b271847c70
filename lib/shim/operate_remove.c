/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* unlink, rmdir, and moving a file to the trunk. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "base/hook.h"
#include "base/sys.h"
#include "shim/create.h"
#include "shim/hold.h"
#include "shim/operations.h"
#include "shim/root_of.h"
#include "union/disk.h"

#define TRIES_MAX 1000

/* A directory that the home does not know is the trunk's. */
static int operate_remove_plainly(struct target *t)
{
    int code = sys_unlinkat(t->at, t->path, AT_REMOVEDIR);
    if (code == 0)
        target_forget(t);
    return code;
}

/* It is not there any more, and its home may be another one by now, which has seen it and is not told. */
static int operate_remove_forget_gone(struct target *t)
{
    target_withdraw(t);
    target_forget(t);
    return 0;
}

static int operate_remove_unlink_held(struct target *t)
{
    struct message gone = {.type = MESSAGE_UNLINKED};
    bool leaf_holds;
    long code = hold_name(t, MESSAGE_UNLINK);
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
    if (code == 0 || (code == -ENOENT && (!target_was_away(t) || BROKEN("missing-is-gone"))))
        target_tell(t, &gone);
    else
        target_withdraw(t);
    return target_has_moved(t, &code) ? BIRTH_AGAIN : (int)code;
}

/* What was found there and is unknown all the same, was removed meanwhile, and the next one that is found is another. */
int hold_know(struct target *t)
{
    struct statx stat;
    int code = 0;
    for (int tries = 0; code == 0 && !t->found.known && tries < TRIES_MAX; tries++) {
        code = (int)TARGET_CALL(t, sys_statx(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat));
        if (code == 0)
            code = target_look(t);
        if (code == 0 && !t->found.known)
            HOOK("still-unknown");
    }
    return code == 0 && !t->found.known ? -EIO : code;
}

static int operate_remove_unlink_known(struct target *t)
{
    int code;
    HOOK("unlink-found");
    if (BROKEN("unlink-unheld") && !t->found.known)
        return sys_unlinkat(t->at, t->path, 0);
    do {
        code = t->unasked ? 0 : hold_know(t);
        if (code == -ENOENT && target_parent_is_read_only(t))
            code = -EROFS;
        if (code == 0)
            code = operate_remove_unlink_held(t);
        if (code == MESSAGE_ABSENT && (code = target_look(t)) == 0)
            code = BIRTH_AGAIN;
    } while (code == BIRTH_AGAIN);
    return code;
}

/* A name that is being replaced has the type of what was there before: it is waited for. */
int operate_unlink(struct target *t)
{
    int code = target_settled(t);
    if (code == 0 && target_is_away(t) && t->slash) /* the slash is part of the place: ENOTDIR, or ENOENT */
        code = (int)TARGET_CALL(t, sys_unlinkat(t->real_at, t->real_path, 0));
    else if (code == 0 && t->slash)
        code = sys_unlinkat(t->at, t->path, 0);
    else if (code == 0)
        code = HOLD_UNDISTURBED(operate_remove_unlink_known(t));
    target_done(t);
    return code;
}

int hold_name(struct target *t, uint16_t type)
{
    struct message hold = {.type = type};
    int code = target_hold(t, &hold);
    const struct message *answer = &t->scratch->answer.message;
    if (code != 0)
        return code;
    code = target_place_at(t, answer->answer.place[0].text, answer->answer.place[0].length);
    if (code != 0)
        target_withdraw(t);
    return code;
}

/* Sends RMDIR for the directory that the target names; loads it if need be. */
int hold_directory(struct target *t, const struct statx *stat)
{
    struct message close = {.type = MESSAGE_RMDIR, .rmdir.child = dirid_of(stat)};
    close.dir = t->dir;
    close.name = message_text(t->name, t->length);
    for (int i = 0; i < 100; i++) {
        struct names_root *root;
        struct view_found found;
        struct dirid id;
        int code = names_hold(t->root, &close, &t->scratch->answer, &t->scratch->hold);
        if (code != 0 || (code = t->scratch->answer.message.result) == 0)
            return code;
        request_let_go(&t->scratch->hold);
        if (code != MESSAGE_NOT_LOADED)
            return code;
        code = target_load(t); /* the parent; then the directory itself */
        if (code == 0)
            code = root_of_directory(t->at, t->path, AT_SYMLINK_NOFOLLOW, &root, &id, &found);
        if (code == 0) /* it is not served: it has no mirror, and to its parent it is a name like any other */
            return hold_name(t, MESSAGE_UNLINK);
        if (code < 0)
            return code;
    }
    return -EIO;
}

static int operate_remove_rmdir_directory(struct target *t, const struct statx *stat)
{
    struct message gone = {.type = MESSAGE_UNLINKED};
    int code = hold_directory(t, stat);
    if (code < 0)
        return code;
    if (code > 0)
        return operate_remove_plainly(t);
    HOOK("rmdir-held");
    code = sys_unlinkat(t->at, t->path, AT_REMOVEDIR);
    HOOK("rmdir-done");
    if (code == 0)
        target_tell(t, &gone);
    else
        target_withdraw(t);
    return code;
}

/* The trunk has no directory of that name; a file in a branch, unless it is just being removed, is none. */
static int operate_remove_rmdir_no_directory(struct target *t)
{
    int code = target_settled(t);
    if (code != 0)
        return code;
    if (!target_is_away(t))
        return operate_remove_plainly(t);
    return target_parent_is_writable(t) ? -ENOTDIR : -EACCES;
}

int operate_rmdir(struct target *t)
{
    struct statx stat;
    int code = target_settled(t);
    if (code == 0 && t->found.known && t->found.entry.type == DT_LNK)
        code = -ENOTDIR; /* `link/` is ENOTDIR, whatever it points at */
    if (code == 0)
        code = sys_statx(t->at, t->path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO | STATX_BTIME, &stat);
    if (code == 0 && S_ISDIR(stat.stx_mode))
        code = dirid_equal(dirid_of(&stat), t->root->id) ? -EBUSY : HOLD_UNDISTURBED(operate_remove_rmdir_directory(t, &stat));
    else
        code = operate_remove_rmdir_no_directory(t);
    target_done(t);
    return code;
}

static int operate_remove_promote_by_root(struct target *t)
{
    struct target trunk = *t;
    trunk.real_path = trunk.path;
    trunk.scratch = scratch_take();
    if (trunk.scratch == NULL)
        return -ENOMEM;
    int code =
        target_place_by_root(&trunk) ? disk_rename_new(t->real_at, t->real_path, trunk.real_at, trunk.real_path) : -EXDEV;
    scratch_give(trunk.scratch);
    return code;
}

static int operate_remove_promote_held(struct target *t)
{
    struct statx stat;
    int code = disk_rename_new(t->real_at, t->real_path, t->at, t->path);
    if (code == -EXDEV)
        code = operate_remove_promote_by_root(t);
    if (code == 0)
        code = sys_statx(t->at, t->path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO | STATX_BTIME, &stat);
    if (code == 0)
        create_commit(t, &stat);
    else
        target_withdraw(t);
    return code;
}

static int operate_remove_promote_away(struct target *t)
{
    long code;
    do {
        code = hold_name(t, MESSAGE_PROMOTE);
        if (code == 0)
            code = t->scratch->answer.message.answer.entry[0].branch != 0 ? operate_remove_promote_held(t)
                                                                          : (target_withdraw(t), 0);
        else if (code == MESSAGE_ABSENT)
            code = -ENOENT;
    } while (target_has_moved(t, &code));
    int looked = target_look(t);
    return code != 0 ? (int)code : looked;
}

int promote_target(struct target *t)
{
    return target_is_away(t) ? HOLD_UNDISTURBED(operate_remove_promote_away(t)) : 0;
}

int operate_promote(struct target *t)
{
    int code = promote_target(t);
    target_done(t);
    return code;
}
