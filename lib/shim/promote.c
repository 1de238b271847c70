/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/promote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "base/sys.h"
#include "shim/claim.h"
#include "shim/create.h"
#include "shim/operations.h"
#include "shim/root_of.h"
#include "union/disk.h"

static int promote_rename(const struct target *t, struct promote_quiet *order, int at, const char *path)
{
    return order != NULL ? disk_rename_next(&order->renaming, t->real_at, t->real_path, at, path)
                         : disk_rename_new(t->real_at, t->real_path, at, path);
}

static int promote_by_root(struct target *t, struct promote_quiet *order)
{
    struct target trunk = *t;
    trunk.real_path = trunk.path;
    trunk.scratch = scratch_take();
    if (trunk.scratch == NULL)
        return -ENOMEM;
    int code = target_place_by_root(&trunk) ? promote_rename(t, order, trunk.real_at, trunk.real_path) : -EXDEV;
    scratch_give(trunk.scratch);
    return code;
}

static int promote_held(struct target *t, struct promote_quiet *order)
{
    struct statx stat;
    const char *path;
    int at, code = target_pin_in_trunk(t, &at, &path);
    if (code == 0)
        code = promote_rename(t, order, at, path);
    if (code == -EXDEV)
        code = promote_by_root(t, order);
    if (code != 0)
        target_withdraw(t);
    else if (root_of_stat(t->root, at, path, &stat) == 0)
        create_commit(t, &stat);
    else
        create_commit_unseen(t, DT_REG);
    if (code == 0 && order != NULL)
        order->moved = true;
    return code;
}

static int promote_away(struct target *t, struct promote_quiet *order)
{
    long code;
    do {
        code = claim_name(t, MESSAGE_PROMOTE);
        if (code == 0)
            code = t->scratch->answer.message.answer.entry[0].branch != 0 ? promote_held(t, order) : (target_withdraw(t), 0);
        else if (code == MESSAGE_ABSENT)
            code = -ENOENT;
    } while (target_has_moved(t, &code));
    if (code == TARGET_RETRY)
        return TARGET_RETRY;
    int looked = target_look(t);
    return code != 0 ? (int)code : looked;
}

int promote_target(struct target *t)
{
    return target_is_away(t) ? CLAIM_UNINTERRUPTED(promote_away(t, NULL)) : 0;
}

int operate_promote(struct target *t)
{
    int code, how = TARGET_MANAGED;
    do
        code = promote_target(t);
    while (code == TARGET_RETRY && (how = target_follow_again(t)) == TARGET_MANAGED);
    target_done(t);
    return how == TARGET_MANAGED ? code : how < 0 ? how : 0;
}

int promote_path(int at, const char *path, unsigned want)
{
    struct target t;
    int saved = errno;
    int code = target_find(&t, at, path, want | TARGET_ALIAS);
    if (code == TARGET_MANAGED)
        code = operate_promote(&t);
    errno = saved;
    return code < 0 && code != -ENOENT && code != -ENOTDIR && code != -ELOOP ? code : 0;
}

int promote_error(int at, const char *path, unsigned want)
{
    struct target t;
    int code = target_find(&t, at, path, want | TARGET_ALIAS);
    if (code == TARGET_MANAGED) {
        struct statx stat;
        code = (int)TARGET_CALL(&t, sys_statx(t.real_at, t.real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat));
        target_done(&t);
    }
    return code == -ENOTDIR || code == -ELOOP ? -code : ENOENT;
}

static int promote_quiet_target(struct target *t, struct promote_quiet *order)
{
    if (!target_is_away(t))
        return 0;
    if (t->found.dir.changed > order->quiet_since)
        return PROMOTE_IN_USE;
    int code = CLAIM_UNINTERRUPTED(promote_away(t, order));
    return order->moved ? PROMOTE_MOVED : code == -ENOENT ? 0 : code;
}

int promote_quiet(const char *path, struct promote_quiet *order)
{
    struct target t;
    int code, how = target_find_text(&t, AT_FDCWD, path, 0);
    order->moved = false;
    if (how != TARGET_MANAGED)
        return how < 0 ? how : 0;
    do
        code = promote_quiet_target(&t, order);
    while (code == TARGET_RETRY && (how = target_follow_again(&t)) == TARGET_MANAGED);
    target_done(&t);
    return how == TARGET_MANAGED ? code : how < 0 ? how : 0;
}
