/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* rename: two paths, each under a root or not. Here: both are. */

#include "shim/operate_rename.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "base/hook.h"
#include "base/sys.h"
#include "shim/create.h"
#include "shim/promote.h"
#include "shim/claim.h"
#include "shim/root_of.h"
#include "shim/side.h"

#define OPERATE_RENAME_DONE 1
#define KIND (STATX_TYPE | STATX_INO | STATX_BTIME)

static int operate_rename_load_both(struct target *from, struct target *to)
{
    int code = from->found.dir_known ? 0 : target_load(from);
    return code == 0 && !to->found.dir_known ? target_load(to) : code;
}

/* Looks in the trunk for a name that is unknown: what is there is adopted. */
static int operate_rename_adopt(struct target *from)
{
    struct statx stat;
    int code = (int)TARGET_CALL(from, sys_statx(from->real_at, target_without_slash(from), AT_SYMLINK_NOFOLLOW, KIND, &stat));
    return code == 0 ? target_look(from) : code;
}

static struct rename_name operate_rename_known(const struct target *t, bool is_there)
{
    return (struct rename_name){
        .error = is_there ? 0 : -ENOENT, .type = t->found.known ? t->found.entry.type : DT_UNKNOWN, .slash = t->slash};
}

/* The home of a new name elsewhere, which is asked for it anyway, tells what is there: of a file that replaces nothing but
 * files nothing has to be known before, unless a slash follows one of the names: it is ENOTDIR then, but EEXIST comes first. */
static int operate_rename_look_for_new(struct rename *r)
{
    struct target *to = &r->to->target;
    const bool is_file = r->where == RENAME_INSIDE && r->old.type == DT_REG && !(r->flags & ~(unsigned)RENAME_NOREPLACE) &&
                         !r->old.slash && !to->slash;
    return to->unasked && !is_file ? target_look(to) : 0;
}

/* A file of a branch that a process is making, or has just made, without its home's knowledge: that is asked for the rename
 * anyway, and says then whether it is there. */
static bool operate_rename_may_be_there(const struct rename *r)
{
    const struct target *from = &r->from->target, *to = &r->to->target;
    return from->found.known && from->found.entry.state == RECORD_PENDING && from->found.entry.branch != 0 &&
           !to->found.known && !from->slash && !to->slash && !(r->flags & ~(unsigned)RENAME_NOREPLACE);
}

static int operate_rename_look_up(struct rename *r)
{
    struct target *from = &r->from->target, *to = &r->to->target;
    int code = operate_rename_load_both(from, to);
    if (code == 0 && !operate_rename_may_be_there(r))
        code = target_settled(from);
    if (code == 0)
        code = target_settled(to);
    if (code == 0 && !from->found.known)
        code = operate_rename_adopt(from);
    r->old = operate_rename_known(from, from->found.known);
    if (code == 0)
        code = operate_rename_look_for_new(r);
    r->new = operate_rename_known(to, to->found.known && to->found.entry.state != RECORD_DYING);
    return code;
}

/* Next to what the kernel checks: mirrors and a marker stand in the way of moving a directory onto another one. They go if the
 * union of that is empty; of one that is not empty the kernel says so, by its marker at least. */
static int operate_rename_make_bare(struct rename *r)
{
    struct target *to = &r->to->target;
    struct statx stat;
    if (r->flags != 0 || r->old.type != DT_DIR || r->new.type != DT_DIR || rename_checks_is_same_name(r))
        return 0;
    int code = target_place_at(to, NULL, 0);
    if (code == 0)
        code = target_pin(to);
    if (code != 0)
        return code;
    code = root_of_stat(to->root, to->real_at, to->real_path, &stat);
    if (code != 0 || !S_ISDIR(stat.stx_mode))
        return 0;
    r->gone = dirid_of(&stat);
    code = claim_directory(to, &stat);
    if (code == 0)
        target_withdraw(to);
    if (code == -ESTALE) /* replaced since: all begins again with the one that is there */
        return TARGET_RETRY;
    return code < 0 ? code : 0;
}

/* Only regular files live in branches: what trades places with, or replaces, a file there has it moved first.
 */
static int operate_rename_promote_for(struct target *one, struct target *other)
{
    if (!other->found.known || other->found.entry.type == DT_REG)
        return 0;
    return promote_target(one);
}

/* What has gone meanwhile need not be replaced. */
static int operate_rename_promote_replaced(struct rename *r)
{
    struct target *to = &r->to->target;
    if ((r->flags & RENAME_NOREPLACE) && to->found.known)
        return 0;
    int code = operate_rename_promote_for(to, &r->from->target);
    return code == -ENOENT && !to->found.known ? 0 : code;
}

static int operate_rename_promote_exchanged(struct rename *r)
{
    return r->flags & RENAME_EXCHANGE ? operate_rename_promote_for(&r->from->target, &r->to->target) : 0;
}

static int operate_rename_promote_for_loader(struct rename *r)
{
    const struct target *to = &r->to->target;
    const bool is_for_loader = r->old.type == DT_REG && create_is_for_loader(to->name, to->length);
    return is_for_loader ? promote_target(&r->from->target) : 0;
}

static int operate_rename_ask_rename(const struct rename *r)
{
    struct target *from = &r->from->target, *to = &r->to->target;
    struct message rename = {.type = MESSAGE_RENAME};
    rename.rename.to_dir = to->dir;
    rename.rename.to_name = message_text(to->name, to->length);
    if (from->found.known)
        rename.rename.found = from->found.entry;
    rename.flags =
        (uint16_t)((r->flags & RENAME_EXCHANGE ? MESSAGE_EXCHANGE : 0) | (r->flags & RENAME_NOREPLACE ? MESSAGE_NOREPLACE : 0) |
                   (r->are_two_files ? MESSAGE_TWO_FILES : 0));
    return target_hold_both(from, to, &rename);
}

/* What is open beneath has another place then, and so have the files of it that are in branches: each node's daemon is to know.
 */
static bool operate_rename_moves_directory(const struct rename *r)
{
    return r->old.type == DT_DIR || ((r->flags & RENAME_EXCHANGE) && r->new.type == DT_DIR);
}

static void operate_rename_tell_renamed(const struct rename *r, int result)
{
    struct target *from = &r->from->target, *to = &r->to->target;
    struct message renamed = {.type = MESSAGE_RENAMED, .result = result, .rename.replaced = r->gone};
    renamed.rename.to_dir = to->dir;
    renamed.rename.to_name = message_text(to->name, to->length);
    if (result == 0 && operate_rename_moves_directory(r))
        target_end(from, &renamed);
    else
        target_tell(from, &renamed);
}

int operate_rename_places(struct target *from, struct target *to, unsigned flags)
{
    int code = sys_renameat2(from->real_at, from->real_path, to->real_at, to->real_path, flags);
    if (code == -EXDEV && (target_place_by_root(from) || target_place_by_root(to)))
        code = sys_renameat2(from->real_at, from->real_path, to->real_at, to->real_path, flags);
    return code;
}

/* By a path it is done in this node's own branch or nowhere; the descriptor of a leaf leads there whatever its branch is called
 * by then. So it is one that can be undone: nothing was there under the new name. -ENOENT, as its path may say. */
static int operate_rename_in_leaf(struct target *from, struct target *to, unsigned flags)
{
    int code;
    target_come_to_one_leaf(from, to);
    HOOK("rename-held");
    while (true) {
        code = operate_rename_places(from, to, flags);
        if (code == 0 && !target_leaf_holds(from)) {
            sys_renameat2(to->real_at, to->real_path, from->real_at, from->real_path, 0);
            code = -ENOENT;
        }
        if (!target_goes_on(from, code))
            return code;
        target_come_near(to);
    }
}

static int operate_rename_nearby(struct target *from, struct target *to, unsigned flags)
{
    target_come_near(from);
    target_come_near(to);
    HOOK("rename-held");
    return operate_rename_places(from, to, flags);
}

static int operate_rename_place_both(struct target *from, struct target *to)
{
    const struct message *answer = &from->scratch->answer.message;
    int code = target_place_at(to, answer->answer.place[1].text, answer->answer.place[1].length);
    if (code == 0)
        code = target_place_at(from, answer->answer.place[0].text, answer->answer.place[0].length);
    return code == 0 ? target_pin_both(from, to) : code;
}

/* The two files are one by now: the kernel renames neither name, and says that it has. */
static bool operate_rename_did_nothing(const struct rename *r, int result)
{
    const struct target *from = &r->from->target;
    struct statx stat;
    return r->are_two_files && result == MESSAGE_EXISTS && !(r->flags & RENAME_EXCHANGE) &&
           sys_statx(from->real_at, from->real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) != -ENOENT;
}

/* Both names are held: one rename of the file system. `result` of the daemon: MESSAGE_EXISTS, if the new name is there. */
static int operate_rename_held(const struct rename *r, int result)
{
    struct target *from = &r->from->target, *to = &r->to->target;
    int code = operate_rename_place_both(from, to);
    if (code == TARGET_RETRY) {
        operate_rename_tell_renamed(r, -ECANCELED);
        return code;
    }
    if (code == 0)
        code =
            result == MESSAGE_EXISTS ? operate_rename_nearby(from, to, r->flags) : operate_rename_in_leaf(from, to, r->flags);
    HOOK("rename-done");
    const bool did_nothing = code == 0 && operate_rename_did_nothing(r, result);
    operate_rename_tell_renamed(r, did_nothing ? -ECANCELED : code);
    return side_missed(from, to, code);
}

/* The kernel says whether the name is still there. */
static int operate_rename_to_itself(struct target *from, unsigned flags)
{
    int code = target_place(from);
    if (code == 0)
        code = target_pin(from);
    return code != 0
               ? code
               : side_missed(from, NULL, sys_renameat2(from->real_at, from->real_path, from->real_at, from->real_path, flags));
}

static bool operate_rename_are_one_file(struct target *from, struct target *to)
{
    struct statx one, two;
    return sys_statx(from->real_at, from->real_path, AT_SYMLINK_NOFOLLOW, STATX_INO, &one) == 0 &&
           sys_statx(to->real_at, to->real_path, AT_SYMLINK_NOFOLLOW, STATX_INO, &two) == 0 && one.stx_ino == two.stx_ino;
}

/* One name, or two of one file, as far as the home knows: a program without the shim may have put another one in the place of
 * one of them, even one with its inode number. If not, nothing is to be done, nor do the directory's times change. */
static int operate_rename_same(struct rename *r)
{
    struct target *from = &r->from->target, *to = &r->to->target;
    if (rename_checks_is_same_name(r))
        return operate_rename_to_itself(from, r->flags);
    const int code = operate_rename_place_both(from, to);
    if (code != 0 || operate_rename_are_one_file(from, to))
        return code;
    r->are_two_files = true;
    return TARGET_RETRY;
}

/* What is there is no file: nothing has been done, and all begins again with that known. */
static int operate_rename_not_onto_file(struct rename *r)
{
    struct target *to = &r->to->target;
    operate_rename_tell_renamed(r, -ECANCELED);
    int code = target_look(to);
    return code == 0 ? TARGET_RETRY : code;
}

/* The home keeps the new name. The disk may not have it any more, or not the old one. */
static int operate_rename_kept(struct target *from, struct target *to)
{
    const int code = to->found.known ? 0 : target_look(to);
    if (code != 0)
        return code;
    return target_was_replaced(from) || target_was_replaced(to) ? TARGET_RETRY : -EEXIST;
}

/* The home's answer: leave to rename (0, MESSAGE_EXISTS), or why nothing is to be done. */
static int operate_rename_claim(struct rename *r)
{
    struct target *from = &r->from->target, *to = &r->to->target;
    int code = operate_rename_ask_rename(r);
    if (code == MESSAGE_SAME)
        return operate_rename_same(r);
    if (code == MESSAGE_ABSENT)
        return -ENOENT;
    if (code == -EEXIST)
        return operate_rename_kept(from, to);
    if (code == MESSAGE_EXISTS && to->unasked && from->scratch->answer.message.answer.entry[1].type != DT_REG)
        return operate_rename_not_onto_file(r);
    return code == 0 || code == MESSAGE_EXISTS ? operate_rename_held(r, code) : code;
}

static int operate_rename_inside(struct rename *r)
{
    static int (*const steps[])(struct rename *) = {operate_rename_look_up,
                                                    rename_checks_found,
                                                    operate_rename_make_bare,
                                                    operate_rename_promote_replaced,
                                                    operate_rename_promote_exchanged,
                                                    operate_rename_promote_for_loader,
                                                    operate_rename_claim};
    int code = 0;
    r->gone = (struct dirid){0, 0};
    for (size_t i = 0; code == 0 && i < sizeof steps / sizeof *steps; i++)
        code = steps[i](r);
    return code == -ESTALE ? -ENOENT : code; /* another directory is there by now: in between there was nothing */
}

static int operate_rename_attempt(struct rename *r)
{
    int code = r->where == RENAME_IN || r->where == RENAME_BETWEEN ? operate_rename_look_for_new(r) : 0;
    if (code != 0)
        return code;
    switch (r->where) {
    case RENAME_OUT:
        return operate_rename_out(r);
    case RENAME_IN:
        return operate_rename_in(r);
    case RENAME_BETWEEN:
        return operate_rename_between(r);
    default:
        return operate_rename_inside(r);
    }
}

/* What the call has is given back before a signal comes in, whose handler may leave it (siglongjmp). */
static int operate_rename_alone(struct rename *r)
{
    const int code = operate_rename_attempt(r);
    if (code != TARGET_RETRY) {
        side_done(r->from);
        side_done(r->to);
    }
    return code;
}

static enum rename_where operate_rename_where(const struct side *from, const struct side *to)
{
    if (!from->is_managed || !to->is_managed)
        return from->is_managed ? RENAME_OUT : RENAME_IN;
    return from->target.root == to->target.root ? RENAME_INSIDE : RENAME_BETWEEN;
}

/* Paths that lead elsewhere by now are followed again. 0, or the result: it is not ours any more. */
static int operate_rename_follow_again(struct rename *r)
{
    if (!(r->from->is_managed && r->from->target.unseen) && !(r->to->is_managed && r->to->target.unseen))
        return 0;
    int code = side_follow_again(r->from, 0), other = side_follow_again(r->to, 0);
    code = code < 0 && code != SIDE_FOREIGN ? code : other < 0 && other != SIDE_FOREIGN ? other : 0;
    if (code != 0)
        return code;
    if (!r->from->is_managed && !r->to->is_managed) {
        code = sys_renameat2(r->from->at, r->from->path, r->to->at, r->to->path, r->flags);
        return code == 0 ? OPERATE_RENAME_DONE : code;
    }
    r->where = operate_rename_where(r->from, r->to);
    return rename_checks_paths(r);
}

int operate_rename(struct side *from, struct side *to, unsigned flags)
{
    struct rename rename = {.from = from, .to = to, .flags = flags, .where = operate_rename_where(from, to)};
    int code = rename_checks_paths(&rename);
    while (code == 0) {
        code = CLAIM_UNINTERRUPTED(operate_rename_alone(&rename));
        if (code != TARGET_RETRY)
            break;
        code = operate_rename_follow_again(&rename);
    }
    side_done(from);
    side_done(to);
    return code == OPERATE_RENAME_DONE ? 0 : code;
}
