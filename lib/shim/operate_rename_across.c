/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* rename over the edge of a root: one path is under it, the other is not. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "base/sys.h"
#include "shim/create.h"
#include "shim/promote.h"
#include "shim/claim.h"
#include "shim/operate_rename.h"
#include "shim/side.h"

static struct rename_name operate_rename_across_known(const struct target *t)
{
    return (struct rename_name){
        .error = t->found.known ? 0 : -ENOENT, .type = t->found.known ? t->found.entry.type : DT_UNKNOWN, .slash = t->slash};
}

static struct rename_name operate_rename_across_outside(const struct side *side, char *text)
{
    struct rename_name name = {.type = DT_UNKNOWN};
    struct statx stat;
    name.error = side_stat_outside(side, text, &name.slash, &stat);
    if (name.error == 0)
        name.type = (uint8_t)(stat.stx_mode >> 12 & 15);
    return name;
}

/* An old name that nobody knows, and that is not in the trunk either: the native call says what is the matter first. An
 * exchange or a whiteout would leave something there that nobody knows. */
static int operate_rename_across_out_natively(struct rename *r, int reason)
{
    struct target *from = &r->from->target;
    if (reason == -EIO || (r->flags & (RENAME_EXCHANGE | RENAME_WHITEOUT)))
        return reason;
    int code = sys_renameat2(from->at, from->path, r->to->at, r->to->path, r->flags);
    if (code == 0)
        target_forget(from);
    return code;
}

/* The name goes, wherever the file lands. Of two names of one file the kernel renames neither. */
static int operate_rename_across_out_held(struct rename *r)
{
    struct message gone = {.type = MESSAGE_UNLINKED};
    struct target *from = &r->from->target;
    struct statx stat;
    int code = sys_renameat2(from->real_at, from->real_path, r->to->at, r->to->path, r->flags);
    if (code == 0 && sys_statx(from->real_at, from->real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) != 0)
        target_tell(from, &gone);
    else
        target_withdraw(from);
    return side_missed(from, NULL, code);
}

int operate_rename_out(struct rename *r)
{
    struct target *from = &r->from->target;
    int code = target_settled(from);
    if (code != 0)
        return code;
    code = claim_know(from);
    if (code != 0)
        return operate_rename_across_out_natively(r, code);
    r->old = operate_rename_across_known(from);
    r->new = operate_rename_across_outside(r->to, from->scratch->text[0]);
    code = rename_checks_found(r);
    if (code == 0)
        code = claim_name(from, MESSAGE_UNLINK);
    if (code != 0)
        return code == MESSAGE_ABSENT ? -ENOENT : code;
    return operate_rename_across_out_held(r);
}

/* The name that is to come, or to be replaced, is held at real_at/real_path. */
static int operate_rename_across_hold(struct target *to, uint8_t type)
{
    int code;
    do {
        code = to->found.known ? claim_name(to, MESSAGE_UNLINK) : create_reserve(to, type, 0);
        if (code == MESSAGE_ABSENT && (code = target_look(to)) == 0)
            code = TARGET_RETRY;
    } while (code == TARGET_RETRY);
    return code;
}

/* Only regular files live in branches: anything else replaces a file in the trunk, unless that has gone meanwhile. */
static int operate_rename_across_promote(struct rename *r)
{
    struct target *to = &r->to->target;
    int code = r->old.type == DT_REG ? 0 : promote_target(to);
    return code == -ENOENT && !to->found.known ? 0 : code;
}

int operate_rename_in(struct rename *r)
{
    struct target *to = &r->to->target;
    r->old = operate_rename_across_outside(r->from, to->scratch->text[0]);
    int code = r->old.error == 0 ? target_settled(to) : 0;
    r->new = operate_rename_across_known(to);
    if (code == 0)
        code = rename_checks_found(r);
    if (code == 0)
        code = operate_rename_across_promote(r);
    if (code == 0)
        code = operate_rename_across_hold(to, r->old.type);
    if (code != 0)
        return code;
    code = sys_renameat2(r->from->at, r->from->path, to->real_at, to->real_path, r->flags);
    if (code == 0)
        create_commit_there(to);
    else
        target_withdraw(to);
    return side_missed(NULL, to, code);
}
