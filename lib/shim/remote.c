/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/remote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/sys.h"
#include "shim/bulk_lookup.h"
#include "shim/state.h"

/* The file of that name, and no other: a name has one place, so the file that is there under that name is it. Its inode may be
 * that of one that was there before, which was of another type. */
static bool remote_is_there(struct target *t)
{
    struct statx stat;
    int code;
    if (target_place(t) != 0)
        return false;
    target_come_to_leaf(t);
    do
        code = sys_statx(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &stat);
    while (target_looks_again(t, code));
    return code == 0 && stat.stx_ino == t->found.entry.ino && IFTODT(stat.stx_mode) == t->found.entry.type;
}

/* Leaves of other nodes whose owners have been told that this process looks into them; of two with one place here the last. A
 * listing goes to and fro between all leaves of a mirror, so these have places of their own. */
struct told {
    uint32_t *place, word;
};

static struct told remote_told_of(const struct target *t)
{
    const uint64_t dir = record_sum(&t->dir, sizeof t->dir, 0);
    const uint64_t mirror = record_sum(t->found.branch, strlen(t->found.branch), dir);
    const uint32_t leaf = t->found.entry.leaf;
    return (struct told){&shim_state.remote.told_leaves[(mirror + leaf) % REMOTE_TOLD], (uint32_t)(mirror >> 32) ^ leaf};
}

static bool remote_is_told(struct told leaf)
{
    return __atomic_load_n(leaf.place, __ATOMIC_RELAXED) == leaf.word;
}

static void remote_set_told(struct told leaf)
{
    __atomic_store_n(leaf.place, leaf.word, __ATOMIC_RELAXED);
}

/* Its home knows that it is looked at, or need not. */
static bool remote_has_asked(const struct target *t)
{
    return t->found.entry.branch == 0 || remote_is_told(remote_told_of(t));
}

/* The home of a name has told the owner of its leaf. */
static void remote_set_asked(const struct target *t)
{
    if (t->found.entry.branch != 0)
        remote_set_told(remote_told_of(t));
}

/* It was found in the index, so the owner of its leaf was not told, and has to know once; and each time of a file that may
 * be made there just now. */
void remote_tell_look(const struct target *t)
{
    if (!names_is_of_others(t->root, &t->found.entry))
        return;
    const struct told leaf = remote_told_of(t);
    if (t->found.entry.state != RECORD_PENDING && remote_is_told(leaf))
        return;
    remote_set_told(leaf);
    names_looked(t->root, t->dir, t->name, t->length, &t->found.entry);
}

/* Somebody of this node has asked before, and the file is still where it was; or the call finds that out: in a branch there
 * is nothing but files that have this name. In the trunk a link might be there by now, and lead the call elsewhere. */
bool remote_recall(struct target *t, unsigned want)
{
    char mirror[RECORD_MIRROR_MAX];
    bool prefetched;
    memcpy(mirror, t->found.dir.mirror, sizeof mirror);
    t->found.known = names_recall(t->root, t->dir, t->name, t->length, &t->found, &prefetched);
    if (!t->found.known)
        return false;
    t->guessed = (want & TARGET_LOOKS) && t->found.entry.branch != 0;
    if ((prefetched && !remote_has_asked(t)) || (!t->guessed && !remote_is_there(t))) {
        memcpy(t->found.dir.mirror, mirror, sizeof mirror);
        t->found.known = t->guessed = false;
    }
    return t->found.known;
}

static void remote_remember(const struct target *t)
{
    names_remember(t->root, t->dir, t->name, t->length, &t->found.entry, t->found.branch, t->found.dir.mirror);
}

void remote_made(struct target *t, const struct statx *stat)
{
    if (names_has_all(t->root, t->dir, t->name, t->length, &t->found) || target_learn(t, MESSAGE_EXISTS) != 0)
        return;
    t->found.entry.state = RECORD_LIVE;
    t->found.entry.ino = stat->stx_ino;
    remote_remember(t);
}

/* Another node's daemon is home of the name: it is asked, and answers when nobody is at work on it (TARGET_PEEKS: or somebody
 * makes it). -ESTALE: another directory
 * is where the path leads by now. */
static int remote_ask_home(struct target *t, unsigned want)
{
    struct message lookup = {.type = MESSAGE_LOOKUP, .flags = want & TARGET_PEEKS ? MESSAGE_PEEK : 0};
    int code = target_ask_here(t, &lookup);
    code = code < 0 ? code : target_learn(t, code);
    if (code == 0 && t->found.known && t->found.entry.state == RECORD_LIVE && !(want & TARGET_PEEKS)) {
        remote_remember(t);
        remote_set_asked(t);
    }
    return code;
}

bool remote_is(const struct target *t)
{
    return t->found.dir_known && !t->found.known && t->length > 0 &&
           !names_has_all(t->root, t->dir, t->name, t->length, &t->found);
}

/* What the index cannot say of the name. A second lookup is made because of what was found before, and is answered by the home
 * itself. */
int remote_look(struct target *t, unsigned want, bool again)
{
    if (t->found.known && !(want & TARGET_PEEKS && t->found.entry.state == RECORD_LIVE))
        remote_tell_look(t);
    if (!remote_is(t) || names_is_granted(t->root, t->dir, t->name, t->length))
        return 0;
    if (!again && (remote_recall(t, want) || (bulk_lookup(t) && remote_recall(t, want))))
        return 0;
    return remote_ask_home(t, want);
}
