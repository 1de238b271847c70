/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* A call has ended, and what was known of its target may be out of date. */

#include "shim/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "base/hook.h"
#include "base/sys.h"

#define SEEN_MAX 3
#define FOLLOWED_MAX 30 /* so often path leads elsewhere by chance, while somebody exchanges directories all the time */

/* A program without the shim made it: from now on the index knows it. */
static void target_recheck_adopt(struct target *t)
{
    struct statx stat;
    if (target_place_new(t, NULL, 0) != 0 ||
        sys_statx(t->real_at, target_without_slash(t), AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO, &stat) != 0)
        return;
    HOOK("adopt-found");
    struct message message = {
        .type = MESSAGE_ADOPT,
        .found.entry = {.type = (uint8_t)IFTODT(stat.stx_mode), .state = RECORD_LIVE, .ino = stat.stx_ino}};
    target_ask(t, &message);
}

static bool target_recheck_can_look(struct target *t, long *result)
{
    int code = target_look(t);
    if (target_cannot_tell(code))
        *result = code;
    return code == 0;
}

/* The file is not where a live entry says. The daemon takes the entry off, or knows better: look again,
 * either way. But if the file is there each time, the call missed something else: its other path, or words
 * that lead there no more. */
static bool target_recheck_vanished(struct target *t, long *result)
{
    if (target_parent_has_changed(t)) /* it is not the file that has gone */
        return false;
    struct message message = {.type = MESSAGE_VANISHED, .found.entry = t->found.entry};
    int code = target_ask(t, &message);
    if (code == MESSAGE_CHANGED && t->rechecks >= SEEN_MAX)
        return false;
    t->rechecks += code == MESSAGE_CHANGED;
    if (target_cannot_tell(code))
        *result = code;
    return code >= 0 && target_recheck_can_look(t, result);
}

/* The kernel does not find a file that is being replaced, so there all the time, or removed, which may yet be given up: what
 * holds is what there is when that has ended. */
static bool target_recheck_under_way(struct target *t, long *result)
{
    if (!target_may_be_missed(t) || t->rechecks >= FOLLOWED_MAX)
        return false;
    t->rechecks++;
    const int code = target_settled(t);
    if (target_cannot_tell(code))
        *result = code;
    return code == 0 && t->found.known;
}

/* It was not where this node remembered it: its words are followed once more, in the end perhaps natively. */
static bool target_recheck_follow_again(struct target *t, long *result)
{
    struct scratch *scratch = t->scratch;
    const char *path = t->path;
    const int at = t->at;
    const uint16_t want = t->want;
    const uint8_t again = t->rechecks;
    int how = target_find_text(t, at, path, want & ~(unsigned)TARGET_LOOKS);
    if (how == TARGET_MANAGED) {
        t->want = want;
        t->rechecks = again + 1;
        scratch_give(scratch);
        return true;
    }
    t->scratch = scratch;
    t->path = path;
    t->at = at;
    t->found.known = false;
    t->foreign = true;
    if (how < 0)
        *result = how;
    return how >= 0;
}

/* Of a call that does nothing but look: do its path leads elsewhere by now, to another directory or after a link? */
static bool target_recheck_is_to_follow(struct target *t)
{
    return (t->want & TARGET_LOOKS) && t->rechecks < FOLLOWED_MAX &&
           (target_parent_has_changed(t) || ((t->want & TARGET_FOLLOW) && t->found.known && t->found.entry.type == DT_LNK));
}

/* What has become of a file that is not where it is known to be. */
static bool target_recheck_look_again(struct target *t, long *result)
{
    struct record_entry before = t->found.entry;
    const bool looked = target_recheck_can_look(t, result);
    if (target_recheck_is_to_follow(t))
        return target_recheck_follow_again(t, result);
    if (!looked || !t->found.known)
        return false;
    if (!record_same(&before, &t->found.entry))
        return true;
    return t->found.entry.state == RECORD_LIVE ? target_recheck_vanished(t, result) : target_recheck_under_way(t, result);
}

/* What is not there because its root is not: by the root's path as it is by now, or not to be served. */
static bool target_recheck_root(struct target *t, long *result)
{
    if (*result != -ENOENT || !target_was_away(t) || !process_root_has_moved(t->root, t->path, t->scratch->text[0]))
        return false;
    const int code = names_attach(t->root);
    *result = code != 0 ? code : *result;
    return true;
}

bool target_was_replaced(struct target *t)
{
    struct statx stat;
    const uint8_t known = t->found.entry.type;
    if (!t->found.known)
        return false;
    const long code = TARGET_CALL(t, sys_statx(t->real_at, target_without_slash(t), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat));
    if (code == 0 && IFTODT(stat.stx_mode) != known)
        target_forget(t);
    return !t->found.known || t->found.entry.type != known;
}

long target_gone(const struct target *t, long result)
{
    return result == -ESTALE && !t->foreign && names_root_is_in_place(t->root) ? -ENOENT : result;
}

bool target_recheck(struct target *t, long *result)
{
    *result = target_gone(t, *result);
    if (!t->found.known && *result >= 0 && !t->foreign)
        target_recheck_adopt(t);
    if (target_recheck_root(t, result))
        return *result == -ENOENT;
    if (!t->found.known || *result != -ENOENT || BROKEN("no-second-look"))
        return false;
    return t->guessed ? target_recheck_follow_again(t, result) : target_recheck_look_again(t, result);
}

bool target_has_moved(struct target *t, long *result)
{
    if (*result != -ENOENT || !target_was_away(t))
        return false;
    if (target_recheck_root(t, result))
        return *result == -ENOENT;
    return t->found.known ? target_recheck(t, result) : t->rechecks++ < SEEN_MAX && target_recheck_can_look(t, result);
}

void target_forget(struct target *t)
{
    bool busy;
    if (target_look(t) != 0)
        return;
    do {
        long result = -ENOENT;
        if (target_settled(t) != 0)
            return;
        busy = target_recheck(t, &result) || (t->found.known && t->found.entry.state != RECORD_LIVE);
    } while (busy);
}
