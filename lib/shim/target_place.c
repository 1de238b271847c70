/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Where a target really is: in the trunk by the caller's own path, in a branch by a path, or from nearby. */

#include "shim/target.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/hook.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/fdcache.h"
#include "shim/root_of.h"
#include "union/layout.h"

bool target_was_away(const struct target *t)
{
    const char *real = t->scratch->real;
    return t->real_path >= real && t->real_path < real + sizeof t->scratch->real; /* from nearby it begins after that */
}

static bool target_place_has_empty_part(const char *place, size_t length)
{
    for (const char *at = place, *end = place + length; (at = memchr(at, '/', (size_t)(end - at))) != NULL; at++)
        if (at + 1 < end && at[1] == '/')
            return true;
    return false;
}

static bool target_place_is_kept(const struct target *t)
{
    return names_are_kept(t->root) && !(t->found.dir_known && (t->found.dir.flags & RECORD_DELEGATED));
}

bool target_may_be_missed(const struct target *t)
{
    const struct record_entry *entry = &t->found.entry;
    return t->found.known && entry->ino != 0 && (entry->state == RECORD_PENDING || target_place_is_kept(t)) &&
           !BROKEN("missed-is-gone");
}

void target_refresh(struct target *t)
{
    struct statx stat;
    if (!target_place_is_kept(t))
        return;
    char *text = t->scratch->text[0];
    const bool is_pinned = t->pin >= 0 && !target_was_away(t);
    const size_t parent = target_was_away(t) ? strlen(t->real_path) - t->length : is_pinned ? 0 : t->parent_length;
    if (path_parent_text(t->real_path, parent, text) == 0)
        sys_statx(t->real_at, text, AT_STATX_FORCE_SYNC, STATX_MTIME | STATX_CTIME, &stat);
}

const char *target_without_slash(struct target *t)
{
    if (!t->slash)
        return t->real_path;
    char *real = t->scratch->real;
    size_t length = strlen(t->real_path);
    while (length > 0 && t->real_path[length - 1] == '/')
        length--;
    memmove(real, t->real_path, length);
    real[length] = '\0';
    return real;
}

int target_place_at(struct target *t, const char *place, size_t length)
{
    int code = target_place_new(t, place, length);
    if (code == 0)
        target_refresh(t);
    return code;
}

int target_place_new(struct target *t, const char *place, size_t length)
{
    struct text text;
    t->real_at = t->pin >= 0 ? t->pin : t->at;
    t->real_path = t->pin >= 0 ? t->path + t->parent_length : t->path;
    if (length == 0)
        return 0;
    if (target_place_has_empty_part(place, length)) /* nothing is to be looked for, or missed, where no mirror is */
        return -EIO;
    text_init(&text, t->scratch->real, PATH_MAX);
    text_add(&text, t->root->path);
    text_add(&text, "/" LAYOUT_BRANCHES "/");
    text_bytes(&text, place, length);
    text_add(&text, "/");
    text_bytes(&text, t->name, t->length);
    t->real_at = AT_FDCWD;
    t->real_path = t->scratch->real;
    return text_ok(&text) ? 0 : -ENAMETOOLONG;
}

/* The rest of a place in a branch, after the directory of branches: BRANCH/MIRROR/LEAF/NAME; NULL: it is in no branch. */
static const char *target_place_behind_branches(const struct target *t)
{
    const size_t root = strlen(t->root->path), branches = sizeof "/" LAYOUT_BRANCHES "/" - 1;
    const char *real = t->scratch->real;
    return target_was_away(t) && strncmp(real + root, "/" LAYOUT_BRANCHES "/", branches) == 0 ? real + root + branches : NULL;
}

static void target_place_come_near(struct target *t, const char *place)
{
    const bool is_near = names_is_slow_lookup(t->root) && fdcache_branches(t->root, &t->real_at);
    t->real_at = is_near ? t->real_at : AT_FDCWD;
    t->real_path = is_near ? place : t->scratch->real;
}

void target_come_near(struct target *t)
{
    const char *place = target_place_behind_branches(t);
    if (place != NULL)
        target_place_come_near(t, place);
}

static size_t target_place_length_before_name(const struct target *t, const char *place)
{
    return place != NULL ? strlen(place) - t->slash - t->length - 1 : 0;
}

void target_come_to_leaf(struct target *t)
{
    const char *place = names_is_slow_lookup(t->root) ? target_place_behind_branches(t) : NULL;
    const size_t length = target_place_length_before_name(t, place);
    t->left_leaf = false;
    t->leaf_pin = -1;
    t->by_leaf = place != NULL && fdcache_pin_leaf(t->root, place, length, &t->leaf, &t->leaf_pin);
    if (t->by_leaf) {
        t->real_at = t->leaf_pin;
        t->real_path = place + length + 1;
        HOOK("leaf-seen");
    } else if (place != NULL) {
        target_place_come_near(t, place);
    }
}

/* To a number that is not the lowest which is free once it has gone; it stays where there is none. */
static int target_place_raise(int fd)
{
    const int raised = fd >= 0 ? (int)SYS3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, fd + 1) : -1;
    if (raised < 0)
        return fd;
    sys_close(fd);
    return raised;
}

void target_yield_number(struct target *t)
{
    const int pin = t->pin, leaf = t->by_leaf ? t->leaf_pin : -1;
    t->pin = target_place_raise(pin);
    t->real_at = pin >= 0 && t->real_at == pin ? t->pin : t->real_at;
    if (leaf < 0 || BROKEN("leaf-unpinned")) /* it is not the call's own then */
        return;
    t->leaf_pin = target_place_raise(leaf);
    t->real_at = t->real_at == leaf ? t->leaf_pin : t->real_at;
}

bool target_yield_pin(struct target *t)
{
    if (t->pin < 0 || t->real_at != t->pin)
        return false;
    sys_close(t->pin);
    t->pin = -1;
    t->real_at = t->at;
    t->real_path = t->path;
    return !target_parent_has_changed(t);
}

void target_come_to_one_leaf(struct target *t, struct target *other)
{
    const char *place = target_place_behind_branches(t), *of_other = target_place_behind_branches(other);
    const size_t length = target_place_length_before_name(t, place);
    target_come_to_leaf(t);
    target_come_near(other);
    if (!t->by_leaf || of_other == NULL || length != target_place_length_before_name(other, of_other) ||
        memcmp(place, of_other, length) != 0)
        return;
    other->real_at = t->real_at;
    other->real_path = of_other + length + 1;
}

/* A process that has a lease after that had not lost it before; a call by the path needs none. */
bool target_leaf_holds(const struct target *t)
{
    return !t->by_leaf || BROKEN("leaf-without-a-lease") || request_has_lease(t->scratch->hold.channel);
}

bool target_goes_on(struct target *t, long result)
{
    const bool goes_near = t->by_leaf && fdcache_may_have_moved(result);
    if (t->left_leaf && result >= 0)
        fdcache_lose_leaf(t->root, t->leaf);
    t->left_leaf = goes_near;
    if (t->by_leaf && !BROKEN("leaf-unpinned"))
        sys_close(t->leaf_pin);
    t->by_leaf = false;
    if (goes_near)
        target_place_come_near(t, target_place_behind_branches(t));
    return goes_near;
}

static bool target_place_leaf_held(const struct target *t)
{
    return BROKEN("leaf-without-a-look") || fdcache_leaf_held(t->root, t->leaf, t->leaf_pin);
}

bool target_looks_again(struct target *t, long result)
{
    if (t->by_leaf)
        HOOK("leaf-used");
    if (!t->by_leaf || fdcache_may_have_moved(result) || target_place_leaf_held(t))
        return target_goes_on(t, result);
    t->by_leaf = false; /* and its number is the program's */
    target_place_come_near(t, target_place_behind_branches(t));
    return true;
}

static int target_place_in_branch(struct target *t)
{
    const struct view_found *found = &t->found;
    struct text text;
    text_init(&text, t->scratch->place, sizeof t->scratch->place);
    text_add(&text, found->branch);
    text_add(&text, "/");
    text_add(&text, found->dir.mirror);
    text_add(&text, "/");
    text_number(&text, found->entry.leaf, 10);
    int code = text_ok(&text) ? target_place_at(t, text.at, text.length) : -ENAMETOOLONG;
    if (code == 0 && t->slash) /* the kernel is to say ENOTDIR in its turn */
        strcat(t->scratch->real, "/");
    return code;
}

int target_place(struct target *t)
{
    HOOK("looked-up");
    return target_is_away(t) ? target_place_in_branch(t) : target_place_at(t, NULL, 0);
}

/* The root's own path of the parent, in scratch->real. */
static bool target_place_parent_by_root(struct target *t, struct text *text)
{
    const char *relative;
    struct statx stat;
    char *words = t->scratch->text[0];
    if (path_parent_text(t->path, t->parent_length, words) != 0)
        return false;
    int fd = t->pin >= 0 ? t->pin : sys_openat(t->at, words, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    int code = names_place_of(t->root, fd, words, &relative);
    if (fd != t->pin)
        sys_close(fd);
    text_init(text, t->scratch->real, PATH_MAX);
    text_add(text, t->root->path);
    text_add(text, "/");
    text_add(text, code == 1 ? relative : ".");
    return code == 1 && text_ok(text) && root_of_identify(AT_FDCWD, text->at, 0, &stat) == 0 &&
           dirid_equal(dirid_of(&stat), t->dir);
}

bool target_place_by_root(struct target *t)
{
    struct text text;
    const bool by_path = t->real_path == t->path || t->real_path == t->path + t->parent_length;
    if (!by_path || !target_place_parent_by_root(t, &text))
        return false;
    text_add(&text, "/");
    text_bytes(&text, t->name, t->length);
    if (t->slash)
        text_add(&text, "/");
    t->real_at = AT_FDCWD;
    t->real_path = text.at;
    return text_ok(&text);
}
