/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* rename and link: two paths, each under a root or not. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hook.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/create.h"
#include "shim/hold.h"
#include "shim/operations.h"
#include "shim/root_of.h"

#define KIND (STATX_TYPE | STATX_INO | STATX_BTIME)

static void operate_rename_done(struct side *side)
{
    if (side->hot)
        target_done(&side->target);
}

static int operate_rename_stat_of(struct target *t, struct statx *stat)
{
    return (int)TARGET_CALL(t, sys_statx(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW, KIND, stat));
}

static bool operate_rename_is_type(const struct target *t, uint8_t type)
{
    return t->found.known && t->found.entry.type == type;
}

/* What stands in the way of moving a directory onto `to`: mirrors and a marker, which go if its union is
 * empty. *gone becomes the identity of what will be replaced. */
static int operate_rename_make_bare(struct target *to, struct dirid *gone)
{
    struct statx stat;
    int code = sys_statx(to->at, to->path, AT_SYMLINK_NOFOLLOW, KIND, &stat);
    if (code != 0 || !S_ISDIR(stat.stx_mode))
        return 0;
    *gone = dirid_of(&stat);
    code = hold_directory(to, &stat);
    if (code == 0)
        target_withdraw(to);
    return code < 0 ? code : 0; /* of one that is not empty the kernel says so, by its marker at least */
}

/* Is the directory `from` the parent of `to`, or one above? Climbs from there to the root. */
static bool operate_rename_lies_in(struct target *to, struct target *from)
{
    struct statx stat, above;
    struct text text;
    text_init(&text, to->scratch->text[0], PATH_MAX);
    text_bytes(&text, to->path, to->parent_length);
    text_add(&text, ".");
    if (sys_statx(from->at, from->path, AT_SYMLINK_NOFOLLOW, KIND, &stat) != 0)
        return false;
    struct dirid id = dirid_of(&stat), at = to->dir;
    while (!dirid_equal(at, id) && !dirid_equal(at, to->root->id)) {
        text_add(&text, "/..");
        if (!text_ok(&text) || sys_statx(to->at, text.at, 0, KIND, &above) != 0)
            return false;
        at = dirid_of(&above);
    }
    return dirid_equal(at, id);
}

static bool operate_rename_same_name(const struct target *a, const struct target *b)
{
    return dirid_equal(a->dir, b->dir) && a->length == b->length && memcmp(a->name, b->name, a->length) == 0;
}

/* The rules that the trunk alone would not know, in the kernel's order. 0 to go on. */
static int operate_rename_check_kinds(struct target *from, struct target *to, unsigned flags, struct dirid *gone)
{
    bool dir = operate_rename_is_type(from, DT_DIR), onto_dir = operate_rename_is_type(to, DT_DIR),
         exchange = flags & RENAME_EXCHANGE;
    bool there = to->found.known && to->found.entry.state != RECORD_DYING;
    if ((flags & RENAME_NOREPLACE || exchange) && there != exchange)
        return 0; /* the daemon says so */
    if ((!dir && (from->slash || (to->slash && !exchange))) || (exchange && to->slash && !onto_dir))
        return -ENOTDIR;
    if (exchange || operate_rename_same_name(from, to))
        return 0;
    if (dir && operate_rename_lies_in(to, from))
        return -EINVAL;
    if (onto_dir && operate_rename_lies_in(from, to))
        return -ENOTEMPTY;
    if (dir && target_is_away(to))
        return target_parent_is_writable(to) ? -ENOTDIR : -EACCES;
    return dir && onto_dir ? operate_rename_make_bare(to, gone) : 0;
}

/* Only regular files live in branches: what trades places with, or replaces, a file there has it moved first.
 */
static int operate_rename_promote_for(struct target *one, struct target *other)
{
    if (!other->found.known || other->found.entry.type == DT_REG)
        return 0;
    return promote_target(one);
}

static int operate_rename_ask_rename(struct target *from, struct target *to, unsigned flags)
{
    struct message rename = {.type = MESSAGE_RENAME};
    rename.rename.to_dir = to->dir;
    rename.rename.to_name = message_text(to->name, to->length);
    rename.flags =
        (uint16_t)((flags & RENAME_EXCHANGE ? MESSAGE_EXCHANGE : 0) | (flags & RENAME_NOREPLACE ? MESSAGE_NOREPLACE : 0));
    return target_hold_both(from, to, &rename);
}

static void operate_rename_tell_renamed(struct target *from, struct target *to, int result, struct dirid gone)
{
    struct message renamed = {.type = MESSAGE_RENAMED, .result = result, .rename.replaced = gone};
    renamed.rename.to_dir = to->dir;
    renamed.rename.to_name = message_text(to->name, to->length);
    target_tell(from, &renamed);
}

/* That the rename came to nothing is told and not waited for: until the daemon has heard it the index shows the name as held,
 * which says nothing of where its file is. */
static bool operate_rename_has_moved(struct target *t, long *code)
{
    if (*code == -ENOENT && target_was_away(t) && target_look(t) == 0)
        target_settled(t);
    return target_has_moved(t, code);
}

/* What was to be renamed, or replaced, was not there: if it is elsewhere now, BIRTH_AGAIN. */
static int operate_rename_missed(struct target *from, struct target *to, long code)
{
    long of_to = code;
    bool moved = from != NULL && operate_rename_has_moved(from, &code);
    moved |= to != NULL && operate_rename_has_moved(to, &of_to);
    return moved ? BIRTH_AGAIN : code != -ENOENT ? (int)code : (int)of_to;
}

static int operate_rename_places(struct target *from, struct target *to, unsigned flags)
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

/* Both names are held: one rename of the file system. `result` of the daemon: MESSAGE_EXISTS, if the new name is there. */
static int operate_rename_held(struct target *from, struct target *to, unsigned flags, int result, struct dirid gone)
{
    const struct message *answer = &from->scratch->answer.message;
    int code = target_place_at(to, answer->answer.place[1].text, answer->answer.place[1].length);
    if (code == 0)
        code = target_place_at(from, answer->answer.place[0].text, answer->answer.place[0].length);
    if (code == 0)
        code = result == MESSAGE_EXISTS ? operate_rename_nearby(from, to, flags) : operate_rename_in_leaf(from, to, flags);
    HOOK("rename-done");
    operate_rename_tell_renamed(from, to, code, gone);
    return operate_rename_missed(from, to, code);
}

static int operate_rename_load_both(struct target *from, struct target *to)
{
    int code = from->found.dir_known ? 0 : target_load(from);
    return code == 0 && !to->found.dir_known ? target_load(to) : code;
}

static int operate_rename_once(struct target *from, struct target *to, unsigned flags)
{
    struct dirid gone = {0, 0};
    struct statx stat;
    int code = operate_rename_load_both(from, to);
    if (code == 0)
        code = target_settled(from);
    if (code == 0)
        code = target_settled(to);
    if (code == 0 && !from->found.known) {
        code = operate_rename_stat_of(from, &stat); /* adopts it, if the trunk has it */
        if (code == 0)
            code = target_look(from);
    }
    if (code == 0 && !from->found.known)
        return -ENOENT;
    if (code == 0)
        code = operate_rename_check_kinds(from, to, flags, &gone);
    if (code == 0 && !((flags & RENAME_NOREPLACE) && to->found.known))
        code = operate_rename_promote_for(to, from);
    if (code == -ENOENT && !to->found.known)
        code = 0; /* what was to be replaced has gone meanwhile */
    if (code == 0 && (flags & RENAME_EXCHANGE))
        code = operate_rename_promote_for(from, to);
    if (code == 0 && operate_rename_is_type(from, DT_REG) && create_is_for_loader(to->name, to->length))
        code = promote_target(from);
    if (code == 0)
        code = operate_rename_ask_rename(from, to, flags);
    if (code == MESSAGE_SAME)
        return 0;
    if (code == MESSAGE_ABSENT)
        return -ENOENT;
    return code == 0 || code == MESSAGE_EXISTS ? operate_rename_held(from, to, flags, code, gone) : code;
}

/* What lies outside under that name, itself: a slash after it, which the kernel does not follow here, is not
 * given on. */
static int operate_rename_stat_outside(const struct side *side, char *text, bool *slash, struct statx *stat)
{
    struct path_parts parts;
    path_split(&parts, side->path);
    size_t length = parts.parent_length + parts.length;
    if (length >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(text, side->path, length);
    text[length] = '\0';
    *slash = parts.slash;
    return sys_statx(side->at, text, AT_SYMLINK_NOFOLLOW, KIND, stat);
}

/* Out of the root: the name goes, wherever the file lands. A directory would leave its mirrors after: EXDEV,
 * as between two mounts, and mv copies. */
static int operate_rename_out(struct target *from, const struct side *to, unsigned flags)
{
    struct message gone = {.type = MESSAGE_UNLINKED};
    struct statx stat;
    bool slash = false;
    int there = operate_rename_stat_outside(to, from->scratch->text[0], &slash, &stat);
    int code = target_settled(from);
    if (code != 0)
        return code;
    if (from->found.known && (flags & RENAME_NOREPLACE) && there == 0)
        return -EEXIST;
    if (from->found.known && (flags & RENAME_EXCHANGE) && slash && there == 0 && !S_ISDIR(stat.stx_mode))
        return -ENOTDIR;
    if (operate_rename_is_type(from, DT_DIR) || (flags & RENAME_EXCHANGE))
        return -EXDEV;
    if (from->found.known && (from->slash || slash))
        return -ENOTDIR;
    code = hold_know(from);
    if (code != 0 && code != -EIO) { /* the native call says what is the matter first */
        code = sys_renameat2(from->at, from->path, to->at, to->path, flags);
        if (code == 0)
            target_forget(from);
        return code;
    }
    if (code != 0)
        return code;
    code = hold_name(from, MESSAGE_UNLINK);
    if (code != 0)
        return code == MESSAGE_ABSENT ? -ENOENT : code;
    code = sys_renameat2(from->real_at, from->real_path, to->at, to->path, flags);
    /* Of two names of one file the kernel renames neither. */
    if (code == 0 && sys_statx(from->real_at, from->real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) != 0)
        target_tell(from, &gone);
    else
        target_withdraw(from);
    return operate_rename_missed(from, NULL, code);
}

/* The name that is to come, or to be replaced, is held at real_at/real_path. */
static int operate_rename_hold_for(struct target *to, uint8_t type)
{
    int code;
    do {
        code = to->found.known ? hold_name(to, MESSAGE_UNLINK) : create_reserve(to, type, 0);
        if (code == MESSAGE_ABSENT && (code = target_look(to)) == 0)
            code = BIRTH_AGAIN;
    } while (code == BIRTH_AGAIN);
    return code;
}

static int operate_rename_confirm_there(struct target *to)
{
    struct statx stat;
    int code = sys_statx(to->real_at, to->real_path, AT_SYMLINK_NOFOLLOW, KIND, &stat);
    if (code == 0)
        create_commit(to, &stat);
    else
        target_withdraw(to);
    return code;
}

static int operate_rename_in(const struct side *from, struct target *to, unsigned flags)
{
    struct statx stat;
    bool slash;
    int code = operate_rename_stat_outside(from, to->scratch->text[0], &slash, &stat);
    if (code == 0)
        code = target_settled(to);
    if (code != 0)
        return code;
    if ((flags & RENAME_NOREPLACE) && to->found.known)
        return -EEXIST;
    if ((flags & RENAME_EXCHANGE) && slash && !S_ISDIR(stat.stx_mode) && to->found.known)
        return -ENOTDIR;
    if (S_ISDIR(stat.stx_mode) || (flags & RENAME_EXCHANGE))
        return -EXDEV;
    if (slash || to->slash)
        return -ENOTDIR;
    if (operate_rename_is_type(to, DT_DIR))
        return flags & RENAME_NOREPLACE ? -EEXIST : -EISDIR;
    if (!S_ISREG(stat.stx_mode))
        code = promote_target(to);
    if (code == -ENOENT && !to->found.known)
        code = 0;
    if (code == 0)
        code = operate_rename_hold_for(to, (uint8_t)(stat.stx_mode >> 12 & 15));
    if (code != 0)
        return code;
    code = sys_renameat2(from->at, from->path, to->real_at, to->real_path, flags);
    if (code == 0)
        operate_rename_confirm_there(to);
    else
        target_withdraw(to);
    return operate_rename_missed(NULL, to, code);
}

/* What the kernel says of two paths before it looks at any of them. */
static int operate_rename_check_words(const char *from, const char *to)
{
    if (!process_can_read(from))
        return -EFAULT;
    if (from[0] == '\0')
        return -ENOENT;
    return !process_can_read(to) ? -EFAULT : to[0] == '\0' ? -ENOENT : 0;
}

/* The mount through which the parent of what is not ours is reached. */
static uint64_t operate_rename_mount_outside(const struct side *side, char *text)
{
    struct path_parts parts;
    struct statx stat;
    if (strnlen(side->path, PATH_MAX) == PATH_MAX)
        return 0;
    path_split(&parts, side->path);
    if (path_parent_text(side->path, parts.parent_length, text) != 0)
        return 0;
    return sys_statx(side->at, text, 0, STATX_MNT_ID, &stat) == 0 ? mount_of(&stat) : 0;
}

/* Between two mounts of one file system (a bind mount) the kernel renames and links nothing, although the
 * places in a branch, which are reached by their full path, would let it. */
static bool operate_rename_is_across(const struct side *from, const struct side *to)
{
    char *text = (from->hot ? from : to)->target.scratch->text[0];
    uint64_t one = from->hot ? from->target.mount : operate_rename_mount_outside(from, text);
    uint64_t two = to->hot ? to->target.mount : operate_rename_mount_outside(to, text);
    return one != 0 && two != 0 && one != two;
}

int operate_rename(struct side *from, struct side *to, unsigned flags)
{
    int code = operate_rename_check_words(from->path, to->path);
    if (code == 0 && !from->hot)
        code = target_outside(from->at, from->path);
    if (code == 0 && !to->hot)
        code = target_outside(to->at, to->path);
    if ((code == 0 || code == -EBUSY || code == -ENAMETOOLONG) && operate_rename_is_across(from, to))
        code = -EXDEV;
    if (code == -EBUSY && (flags & RENAME_NOREPLACE) && from->hot)
        code = -EEXIST;
    if (code == -ENAMETOOLONG && from->hot && !from->target.found.known)
        code = -ENOENT;
    if (code == 0 && from->hot && to->hot && from->target.root != to->target.root)
        code = -EXDEV;
    if (code == 0)
        do
            code = HOLD_UNDISTURBED(!from->hot ? operate_rename_in(from, &to->target, flags)
                                    : !to->hot ? operate_rename_out(&from->target, to, flags)
                                               : operate_rename_once(&from->target, &to->target, flags));
        while (code == BIRTH_AGAIN);
    operate_rename_done(from);
    operate_rename_done(to);
    return code;
}

static int operate_rename_link_places(struct target *from, struct target *to, int flags)
{
    int code = sys_linkat(from->real_at, from->real_path, to->real_at, to->real_path, flags);
    if (code == -EXDEV && (target_place_by_root(from) || target_place_by_root(to)))
        code = sys_linkat(from->real_at, from->real_path, to->real_at, to->real_path, flags);
    return code;
}

static int operate_rename_link_real(struct side *from, struct target *to, int flags)
{
    if (!from->hot)
        return sys_linkat(from->at, from->path, to->real_at, to->real_path, flags);
    int code = target_place(&from->target);
    return code == 0 ? operate_rename_link_places(&from->target, to, flags & ~AT_SYMLINK_FOLLOW) : code;
}

static int operate_rename_stat_side(struct side *from, int flags, struct statx *stat)
{
    if (from->hot)
        return operate_rename_stat_of(&from->target, stat);
    return sys_statx(from->at, from->path, (flags & AT_EMPTY_PATH) | (flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW),
                     KIND, stat);
}

/* A link from another mount; one that is read-only says that first. */
static int operate_rename_across_error(int at, const char *path, char *text)
{
    struct path_parts parts;
    path_split(&parts, path);
    if (path_parent_text(path, parts.parent_length, text) != 0)
        return -EXDEV;
    return SYS4(SYS_faccessat2, at, text, W_OK, 0) == -EROFS ? -EROFS : -EXDEV;
}

static int operate_rename_link_once(struct side *from, struct side *to_side, int flags)
{
    struct target *to = &to_side->target;
    struct statx stat, there;
    int code = operate_rename_stat_side(from, flags, &stat);
    if (code == 0 && to->slash && to->found.known && operate_rename_is_type(to, DT_LNK)) /* its end may be given up */
        code = target_settled(to);
    if (code == 0 && to->found.known) {
        code = operate_rename_stat_of(to, &there) == -ENOENT ? 0 : -EEXIST;
        if (to->slash && operate_rename_is_type(to, DT_LNK) && to->found.entry.state != RECORD_DYING)
            code = -EEXIST;
    }
    if (code == 0 && to->slash)
        code = -ENOENT;
    if (code == 0 && from->hot && operate_rename_is_across(from, to_side))
        code = operate_rename_across_error(to->at, to->path, to->scratch->text[0]);
    HOOK("link-found");
    if (code == 0 && S_ISDIR(stat.stx_mode)) /* the kernel refuses, and says why */
        code = sys_linkat(from->at, from->path, to->at, to->path, flags);
    else if (code == 0)
        code = create_reserve(to, (uint8_t)(stat.stx_mode >> 12 & 15), 0);
    if (code != 0)
        return code;
    HOOK("link-reserved");
    code = operate_rename_link_real(from, to, flags);
    HOOK("link-made");
    if (code == -ENOENT && BROKEN("link-asks") && target_look(&from->target) != 0)
        code = -EIO;
    if (code == 0)
        operate_rename_confirm_there(to);
    else
        target_withdraw(to);
    /* Asked about only now: an operation on the old name may wait for the new one, or it is the same. */
    long result = code;
    return from->hot && target_again(&from->target, &result) ? BIRTH_AGAIN : (int)result;
}

static int operate_rename_link_out(struct side *from_side, const struct side *to, int flags)
{
    struct target *from = &from_side->target;
    struct statx stat;
    int code = !process_can_read(to->path) ? -EFAULT : operate_rename_stat_of(from, &stat);
    if (code == 0)
        code = to->path[0] == '\0' ? -ENOENT : target_outside(to->at, to->path);
    if (code != 0)
        return code == -EBUSY ? -EEXIST : code;
    if (operate_rename_is_across(from_side, to))
        return sys_statx(to->at, to->path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == 0
                   ? -EEXIST
                   : operate_rename_across_error(to->at, to->path, from->scratch->text[0]);
    return (int)TARGET_CALL(from, sys_linkat(from->real_at, from->real_path, to->at, to->path, flags & ~AT_SYMLINK_FOLLOW));
}

int operate_link(struct side *from, struct side *to, int flags)
{
    int code;
    if (!to->hot) {
        code = operate_rename_link_out(from, to, flags);
    } else if (from->hot && from->target.root != to->target.root) {
        code = -EXDEV;
    } else {
        do
            code = HOLD_UNDISTURBED(operate_rename_link_once(from, to, flags));
        while (code == BIRTH_AGAIN);
    }
    operate_rename_done(from);
    operate_rename_done(to);
    return code;
}
