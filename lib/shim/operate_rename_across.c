/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* rename over the edge of a root: one path is under it, and the other is not, or is under another root. One rename of the file
 * system each, so that a crash leaves what was there before it or after. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "base/hook.h"
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
        name.type = (uint8_t)IFTODT(stat.stx_mode);
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

/* The old name goes, wherever the file lands; or another file has it. Of two names of one file the kernel renames neither. */
static void operate_rename_across_tell_old(struct rename *r)
{
    struct message gone = {.type = MESSAGE_UNLINKED};
    struct target *from = &r->from->target;
    struct statx stat;
    if (r->flags & RENAME_EXCHANGE)
        create_commit_there(from, r->new.type);
    else if (sys_statx(from->real_at, from->real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == -ENOENT)
        target_tell(from, &gone);
    else
        target_withdraw(from);
}

/* Only regular files live in branches: what trades places with anything else is moved to the trunk first. */
static int operate_rename_across_promote_old(struct rename *r)
{
    return (r->flags & RENAME_EXCHANGE) && r->new.type != DT_REG ? promote_target(&r->from->target) : 0;
}

static int operate_rename_across_hold_old(struct target *from)
{
    int code = claim_name(from, MESSAGE_UNLINK);
    return code == MESSAGE_ABSENT ? -ENOENT : code;
}

static int operate_rename_across_out_held(struct rename *r)
{
    struct target *from = &r->from->target;
    int code = sys_renameat2(from->real_at, from->real_path, r->to->at, r->to->path, r->flags);
    if (code == 0)
        operate_rename_across_tell_old(r);
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
        code = operate_rename_across_promote_old(r);
    if (code == 0)
        code = operate_rename_across_hold_old(from);
    return code == 0 ? operate_rename_across_out_held(r) : code;
}

/* The name that is to come, or to be replaced, is held at real_at/real_path. */
static int operate_rename_across_hold_new(struct target *to, uint8_t type)
{
    int code = to->found.known ? claim_name(to, MESSAGE_UNLINK) : create_reserve(to, type, 0);
    return code == MESSAGE_ABSENT && (code = target_look(to)) == 0 ? TARGET_RETRY : code;
}

/* Anything else replaces a file in the trunk, unless that has gone meanwhile, and so does what a loader looks for. */
static int operate_rename_across_promote_new(struct rename *r)
{
    struct target *to = &r->to->target;
    int code = r->old.type == DT_REG && !create_is_for_loader(to->name, to->length) ? 0 : promote_target(to);
    return code == -ENOENT && !to->found.known ? 0 : code;
}

/* A partner that a program without the shim has made is there, too. */
static int operate_rename_across_look_at_new(struct rename *r)
{
    struct target *to = &r->to->target;
    int code = target_settled(to);
    if (code == 0 && (r->flags & RENAME_EXCHANGE) && (code = claim_know(to)) == -ENOENT)
        code = 0;
    r->new = operate_rename_across_known(to);
    return code;
}

int operate_rename_in(struct rename *r)
{
    struct target *to = &r->to->target;
    r->old = operate_rename_across_outside(r->from, to->scratch->text[0]);
    int code = r->old.error == 0 ? operate_rename_across_look_at_new(r) : 0;
    if (code == 0)
        code = rename_checks_found(r);
    if (code == 0)
        code = operate_rename_across_promote_new(r);
    if (code == 0)
        code = operate_rename_across_hold_new(to, r->old.type);
    if (code != 0)
        return code;
    code = sys_renameat2(r->from->at, r->from->path, to->real_at, to->real_path, r->flags);
    if (code == 0)
        create_commit_there(to, r->old.type);
    else
        target_withdraw(to);
    return side_missed(NULL, to, code);
}

/* From one root to another one. */

static int operate_rename_between_look_up(struct rename *r)
{
    struct target *from = &r->from->target;
    int code = target_settled(from);
    if (code == 0 && (code = claim_know(from)) == -EIO)
        return code;
    r->old = operate_rename_across_known(from);
    r->old.error = code;
    return code == 0 ? operate_rename_across_look_at_new(r) : 0;
}

static int operate_rename_between_hold(struct rename *r, struct target *which)
{
    return which == &r->from->target ? operate_rename_across_hold_old(which)
                                     : operate_rename_across_hold_new(which, r->old.type);
}

/* Each name has another daemon, and nobody waits for one of them with the other unless that is the later one. */
static int operate_rename_between_hold_both(struct rename *r)
{
    struct target *first = &r->from->target, *then = &r->to->target;
    if (record_order(first->root->id, "", 0, then->root->id, "", 0) > 0) {
        first = then;
        then = &r->from->target;
    }
    int code = operate_rename_between_hold(r, first);
    if (code == 0 && (code = operate_rename_between_hold(r, then)) != 0)
        target_withdraw(first);
    return code;
}

static int operate_rename_between_held(struct rename *r)
{
    struct target *from = &r->from->target, *to = &r->to->target;
    HOOK("rename-held");
    int code = operate_rename_places(from, to, r->flags);
    HOOK("rename-done");
    if (code == 0) {
        create_commit_there(to, r->old.type);
        operate_rename_across_tell_old(r);
    } else {
        target_withdraw(from);
        target_withdraw(to);
    }
    return side_missed(from, to, code);
}

int operate_rename_between(struct rename *r)
{
    static int (*const steps[])(struct rename *) = {operate_rename_between_look_up,    rename_checks_found,
                                                    operate_rename_across_promote_new, operate_rename_across_promote_old,
                                                    operate_rename_between_hold_both,  operate_rename_between_held};
    int code = 0;
    for (size_t i = 0; code == 0 && i < sizeof steps / sizeof *steps; i++)
        code = steps[i](r);
    return code;
}
