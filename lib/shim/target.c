/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/sys.h"
#include "shim/dead_end.h"
#include "shim/remote.h"
#include "shim/parent_guess.h"
#include "shim/root_of.h"
#include "shim/prefilter.h"
#include "union/layout.h"

#define LINKS_MAX 40             /* the kernel's MAXSYMLINKS */
#define MISSES_PARENT (-EREMCHG) /* of a nested look alone */
#define TRIES_MAX 1000

int target_outside(int at, const char *path)
{
    struct path_parts parts;
    struct statx stat;
    struct scratch *scratch;
    if (strnlen(path, PATH_MAX) == PATH_MAX)
        return -ENAMETOOLONG;
    if ((scratch = scratch_take()) == NULL)
        return -ENOMEM;
    path_split(&parts, path);
    int code = path_parent_text(path, parts.parent_length, scratch->text[0]);
    if (code == 0)
        code = sys_statx(at, scratch->text[0], 0, STATX_TYPE, &stat);
    scratch_give(scratch);
    return code;
}

static void target_set_words(struct target *t, int at, const char *path, const struct path_parts *parts)
{
    t->at = at;
    t->path = path;
    t->name = parts->name;
    t->length = (uint32_t)parts->length;
    t->parent_length = (uint32_t)parts->parent_length;
    t->slash = parts->slash;
    t->unasked = t->unseen = t->guessed = t->foreign = t->sticky = false;
}

/* Not inlined, as what comes next: what a path's looks for others in its way have on the stack at the same time is little. */
__attribute__((noinline)) static int target_is_there(int at, const char *path, int flags)
{
    struct statx stat;
    return sys_statx(at, path, flags, STATX_TYPE, &stat);
}

/* Cuts `text`, a `parent/.` that is not there, to what is missing first. False: that is nothing here. */
static bool target_cut_to_missing(int at, char *text)
{
    char *end = text + strlen(text) - 1; /* the dot */
    while (end > text) {
        while (end > text && end[-1] == '/')
            end--;
        *end = '\0'; /* `text` names what is missing; is its own parent there? */
        while (end > text && end[-1] != '/')
            end--;
        char kept = *end;
        *end = '\0';
        int code = end > text ? target_is_there(at, text, 0) : 0;
        *end = kept;
        if (code != -ENOENT)
            return code == 0;
    }
    return false;
}

/* The kernel found no parent at `text` (which is changed). Where the first component that it misses is a file
 * in a branch, it would have said ENOTDIR had the file been there: -ENOTDIR, else TARGET_FOREIGN. A link whose own path has no
 * parent leaves that in `text`, and is gone on from, one by one, so that nothing is looked for within a look. */
__attribute__((noinline)) static int target_missing_parent(int at, char *text)
{
    struct target first;
    int how = MISSES_PARENT;
    for (int links = 0; how == MISSES_PARENT && links < LINKS_MAX; links++) {
        first.missing = text;
        how = target_cut_to_missing(at, text) ? target_find_text(&first, at, text, TARGET_FOLLOW | TARGET_ALIAS | TARGET_NESTED)
                                              : TARGET_FOREIGN;
    }
    if (how == -ENOTDIR || how == -ELOOP)
        return how; /* it is a link, whose path leads through such a file */
    if (how != TARGET_MANAGED)
        return TARGET_FOREIGN;
    int code = (int)TARGET_CALL(&first, target_is_there(first.real_at, first.real_path, AT_SYMLINK_NOFOLLOW));
    /* -ENOTDIR: a link that says so has a slash at its end */
    code = (code == 0 || code == -ENOTDIR) && target_is_away(&first) ? -ENOTDIR : TARGET_FOREIGN;
    target_done(&first);
    return code;
}

static bool target_is_same_parent(const struct target *t, const struct target *first)
{
    return first != NULL && first->parent != TARGET_PARENT_UNSEEN && first->at == t->at &&
           first->parent_length == t->parent_length && memcmp(first->path, t->path, t->parent_length) == 0;
}

/* What is under the name in the parent that `first` has, too. */
static int target_find_in_parent_of(struct target *t, const struct target *first, unsigned want)
{
    t->parent = first->parent;
    if (t->parent == TARGET_PARENT_FOREIGN)
        return TARGET_FOREIGN;
    t->dir = first->dir;
    t->mount = first->mount;
    t->root = first->root;
    t->sticky = first->sticky;
    int code = want & TARGET_ASKS ? target_look_here(t) : target_look(t);
    return code == 0 ? TARGET_MANAGED : code;
}

/* A name that is being replaced has the type of what was there before: the file system knows better. Links
 * are in the trunk alone. */
static bool target_may_be_link(const struct record_entry *entry)
{
    return entry->type == DT_LNK || (entry->state == RECORD_PENDING && entry->branch == 0);
}

/* In the directory that was found: what is known of the name, unless its home is asked anyway. TARGET_MANAGED or -errno. */
static int target_find_name(struct target *t, unsigned want)
{
    t->parent = TARGET_PARENT_OURS;
    t->unasked = (want & TARGET_ASKS) && !t->slash && remote_is(t);
    int code = t->unasked ? 0 : remote_look(t, want, false);
    return code == 0 ? TARGET_MANAGED : code;
}

static bool target_is_own(const struct target *t)
{
    return layout_is_ours(t->name, t->length, dirid_equal(t->dir, t->root->id));
}

/* A name that is to be made where the words are guessed to lead, and of which nothing is known: its home is asked before
 * anything is done. False: let the kernel say where they lead. */
static bool target_find_guessed(struct target *t, uint64_t words)
{
    struct parent parent;
    if (t->slash || !parent_guess(words, &parent))
        return false;
    t->root = parent.root;
    t->dir = parent.dir;
    t->mount = parent.mount;
    if (names_is_plain(t->root) || names_find(t->root, t->dir, t->name, t->length, &t->found) != 0 ||
        !root_of_is_loaded(&t->found) || t->found.known || target_is_own(t))
        return false;
    t->unseen = true;
    t->unasked = remote_is(t);
    return true;
}

/* No parent, says the kernel. A call that makes a name in a root does not ask it once more: by then there may be one. */
static int target_missing(const struct target *t, const struct path_parts *parts, unsigned want, char *text)
{
    if (want & TARGET_NESTED) {
        strcpy(t->missing, text);
        return MISSES_PARENT;
    }
    int code = target_missing_parent(t->at, text);
    return code == TARGET_FOREIGN && t->beneath && (want & TARGET_MAKES) && parts->last == PATH_NAME ? -ENOENT : code;
}

static void target_unpin(struct target *t)
{
    if (t->pin >= 0)
        sys_close(t->pin);
    t->pin = -1;
}

/* Looks at the parent, unless that was the first question. */
static int target_look_at_parent(struct target *t, unsigned want)
{
    if (t->seen)
        return 0;
    target_unpin(t);
    const int code = target_see_parent(t->scratch, t->at, (want & TARGET_MAKES) && t->beneath);
    t->pin = t->scratch->seen.pin;
    return code;
}

/* Of a parent that the kernel does not find. Whether it goes by names of another time the daemon says, which a process may have
 * come to just now, by another directory on the way. */
static int target_look_at_parent_late(struct target *t, const struct path_parts *parts, unsigned want, char *text)
{
    if (!t->beneath || path_parent_text(t->path, parts->parent_length, text) != 0 || !target_refresh_way(t->at, text))
        return -ENOENT;
    return target_look_at_parent(t, want);
}

/* To a directory that has gone, says its daemon. By what the kernel remembered of the way it may have been there before this
 * call, and another one in its place. */
static bool target_is_led_elsewhere(struct target *t, unsigned want, char *text)
{
    return t->beneath && path_parent_text(t->path, t->parent_length, text) == 0 && target_refresh_way(t->at, text) &&
           target_look_at_parent(t, want) == 0 && !dirid_equal(t->scratch->seen.dir, t->dir);
}

/* In the parent that was seen. `changes`: the way to it was known to change before. As the next one. */
static int target_find_in_root(struct target *t, uint64_t words, unsigned want, char *text, bool changes)
{
    const struct scratch_seen *seen = &t->scratch->seen;
    t->dir = seen->dir;
    t->mount = seen->mount;
    t->sticky = seen->sticky;
    const int code = root_of(t->scratch, t->at, text, seen->device, t->dir, t->name, t->length, &t->root, &t->found);
    if (code == 1 && t->beneath && !changes && target_way_changes()) /* as its daemon, which it has come to just now, says */
        return -ESTALE;
    if (code == -ENOENT && target_is_led_elsewhere(t, want, text))
        return -ESTALE;
    t->parent = code == 0 ? TARGET_PARENT_FOREIGN : TARGET_PARENT_UNSEEN;
    if (code == 0)
        shim_thread.works_within = false;
    if (code != 1)
        return code;
    parent_guess_learn(words, &(struct parent){.root = t->root, .dir = t->dir, .mount = t->mount});
    return target_find_name(t, want);
}

/* The same where the kernel says they lead. -ESTALE: to another directory by now. */
static int target_find_in_seen(struct target *t, uint64_t words, const struct path_parts *parts, unsigned want, char *text)
{
    const bool changes = t->beneath && target_way_changes();
    if (path_parent_text(t->path, parts->parent_length, text) != 0)
        return TARGET_FOREIGN;
    if (!t->seen && changes)
        target_refresh_way(t->at, text);
    int code = target_look_at_parent(t, want);
    t->seen = false;
    const bool is_refreshed = code == -ENOENT && t->beneath && target_refresh_way(t->at, text);
    if (is_refreshed)
        code = target_look_at_parent(t, want);
    if (code == -ENOENT && parts->parent_length > 0) {
        const int missing = target_missing(t, parts, want, text);
        if (is_refreshed || (missing != TARGET_FOREIGN && missing != -ENOENT))
            return missing;
        code = target_look_at_parent_late(t, parts, want, text);
        if (code != 0)
            return missing;
    }
    if (code != 0)
        return root_of_unseen(t->scratch, t->at, text, code);
    if (parts->last == PATH_DOTS)
        return TARGET_FOREIGN;
    return target_find_in_root(t, words, want, text, changes);
}

/* Resolves the parent. TARGET_MANAGED, TARGET_FOREIGN or -errno. */
static int target_find_parent(struct target *t, const struct target *first, int at, const char *path, unsigned want, char *text)
{
    struct path_parts parts;
    if (t->seen)
        parts = t->scratch->look.parts;
    else
        path_split(&parts, path);
    target_set_words(t, at, path, &parts);
    if (!t->seen)
        target_unpin(t);
    if (target_has_no_name(&parts))
        return TARGET_FOREIGN;
    if (parts.last == PATH_NAME && target_is_same_parent(t, first))
        return target_find_in_parent_of(t, first, want);
    const uint64_t words = want & TARGET_LATER ? parent_guess_word(at, path, parts.parent_length) : 0;
    if (parts.last == PATH_NAME && target_find_guessed(t, words))
        return TARGET_MANAGED;
    int code = target_find_in_seen(t, words, &parts, want, text);
    for (int i = 0; code == -ESTALE && i < TRIES_MAX; i++) {
        if (path_parent_text(path, parts.parent_length, text) == 0)
            target_refresh_way(at, text);
        code = target_find_in_seen(t, words, &parts, want, text);
    }
    return code;
}

/* Writes where a symbolic link at (at, path) leads, seen from the same `at`; 0, or -errno: it is none. */
static int target_read_link(int at, const char *path, size_t parent_length, bool slash, char *to)
{
    char *end = to;
    size_t room = PATH_MAX;
    ssize_t length;
    /* A link's text takes the place of its name: kept after the parent's text unless it is absolute. */
    if (parent_length > PATH_MAX - 2)
        return -ENAMETOOLONG;
    memmove(to, path, parent_length);
    end += parent_length;
    room -= parent_length;
    length = sys_readlinkat(at, path, end, room - 2);
    if (length < 0)
        return (int)length;
    if ((size_t)length >= room - 2)
        return -ENAMETOOLONG;
    if (length > 0 && end[0] == '/') {
        memmove(to, end, (size_t)length);
        end = to;
    }
    end += length;
    if (slash)
        *end++ = '/';
    *end = '\0';
    return 0;
}

/* The same where the text is too long after the parent's, for the kernel puts no texts together: without what says nothing it
 * may be short enough. `path` is shortened; `text` is room for the link's own. */
__attribute__((noinline)) static int target_read_long_link(int at, char *path, size_t parent_length, bool slash, char *text,
                                                           char *to)
{
    ssize_t length = sys_readlinkat(at, path, text, PATH_MAX - 1);
    if (length < 0)
        return (int)length;
    text[length] = path[parent_length] = '\0';
    const size_t last = path_shorten(text), before = text[0] == '/' ? 0 : path_shorten(path);
    if (before + last >= PATH_MAX - 1)
        return -ENAMETOOLONG;
    memcpy(to, path, before);
    memcpy(to + before, text, last);
    to[before + last] = slash ? '/' : '\0';
    to[before + last + slash] = '\0';
    return 0;
}

/* What /proc calls links are the files themselves, which the kernel follows to; their text is only a
 * description. But a path that begins there may lead out of it (/proc/self/cwd/link). The parent's text is
 * in the scratch, as target_find_parent left it. */
static bool target_is_in_proc(const struct target *t)
{
    struct statfs fs;
    return strncmp(t->path, "/proc/", 6) == 0 && SYS2(SYS_statfs, t->scratch->text[0], &fs) == 0 &&
           fs.f_type == PROC_SUPER_MAGIC;
}

/* Is there anything to be followed at the target's end? Of a name in the index its type says so; of any other
 * the file system. */
static bool target_ends_in_link(const struct target *t, int how, unsigned want)
{
    /* A slash after a link makes the kernel follow it, but not where the name itself is made, removed or
     * moved. */
    if (t->slash ? (want & TARGET_MAKES) != 0 : !(want & TARGET_FOLLOW))
        return false;
    if (how == TARGET_MANAGED)
        return t->found.known && target_may_be_link(&t->found.entry);
    return (want & (TARGET_MAKES | TARGET_ALIAS)) != 0 && t->length > 0 && !target_is_in_proc(t);
}

/* fs.protected_symlinks: in a sticky directory the kernel follows few links. What it meets where one leads it tells itself. */
static bool target_is_link_protected(const struct target *t, const char *plain)
{
    return t->sticky && target_is_there(t->at, plain, 0) == -EACCES;
}

static int target_resolve(struct target *t, const struct target *first, int at, const char *path, unsigned want)
{
    char *parent = t->scratch->text[0], *link = t->scratch->text[1];
    int how = target_find_parent(t, first, at, path, want, parent);
    for (int links = 0; how >= 0 && target_ends_in_link(t, how, want); links++) {
        if (links == LINKS_MAX)
            return how == TARGET_MANAGED ? -ELOOP : TARGET_FOREIGN;
        size_t parent_length = t->parent_length;
        /* without the trailing slash, which would make the kernel follow it */
        char *plain = t->scratch->real;
        size_t plain_length = parent_length + t->length;
        if (plain_length >= PATH_MAX)
            return TARGET_FOREIGN;
        memcpy(plain, t->path, plain_length);
        plain[plain_length] = '\0';
        if (target_is_link_protected(t, plain))
            return -EACCES;
        int code = target_read_link(t->at, plain, parent_length, t->slash, link);
        if (code == -ENAMETOOLONG)
            code = target_read_long_link(t->at, plain, parent_length, t->slash, parent, link);
        if (code == -ENAMETOOLONG && how == TARGET_MANAGED) /* as it is, what it leads to would not be found in a branch */
            return code;
        if (code != 0 && !sys_is_about_path(code) && !sys_may_be_refused(code)) /* it may be one, and lead there */
            return code;
        if (code != 0)
            break;
        how = target_find_parent(t, NULL, t->at, link, want & (TARGET_MAKES | TARGET_NESTED), parent);
        t->parent = TARGET_PARENT_UNSEEN; /* these are not the caller's path */
    }
    return how;
}

/* CephFS: the directory of a directory's snapshots, which is found by that name and listed nowhere, is no entry. */
static bool target_is_of_snapshots(const struct target *t)
{
    static const char name[] = ".snap";
    return t->length == sizeof name - 1 && memcmp(t->name, name, t->length) == 0 &&
           SYS4(SYS_getxattr, t->root->path, "ceph.dir.entries", NULL, 0) >= 0;
}

static int target_find_beneath(struct target *t, const struct target *first, int at, const char *path, unsigned want)
{
    if (t->scratch == NULL && (t->scratch = scratch_take()) == NULL)
        return -ENOMEM;
    int how = target_resolve(t, first, at, path, want);
    if (how == TARGET_MANAGED && target_is_of_snapshots(t))
        return TARGET_FOREIGN;
    if (how != TARGET_MANAGED || !target_is_own(t))
        return how;
    t->found.known = false; /* names that shunt keeps for itself do not exist for an application */
    return want & TARGET_MAKES ? -EPERM : -ENOENT;
}

__attribute__((noinline)) static int target_classify(struct target *t, const struct target *first, int at, const char *path,
                                                     unsigned want, struct scratch *seen)
{
    t->scratch = seen;
    t->seen = seen != NULL && seen->look.is_at_parent;
    t->pin = t->seen ? seen->seen.pin : -1;
    t->parent = TARGET_PARENT_UNSEEN;
    t->rechecks = 0;
    t->want = (uint16_t)want;
    t->by_leaf = false;
    if (strnlen(path, PATH_MAX) == PATH_MAX) { /* the native call refuses it, and reads no further either */
        target_give_seen(seen);
        return TARGET_FOREIGN;
    }
    const enum path_verdict verdict = seen != NULL && !t->seen ? seen->look.verdict : prefilter(&t->scratch, at, path);
    t->beneath = verdict == PATH_BENEATH;
    const bool may_miss = verdict == PATH_IS_ROOT && path_goes_up(path); /* where it goes up from may be a file, or none */
    int how = TARGET_FOREIGN;
    if (verdict == PATH_BENEATH || may_miss || (verdict == PATH_FOREIGN && (want & (TARGET_MAKES | TARGET_ALIAS))))
        how = target_find_beneath(t, first, at, path, want);
    if (how == TARGET_FOREIGN && verdict != PATH_FOREIGN && !(want & TARGET_NESTED))
        how = prefilter_hidden(t->scratch, at, path);
    if (how != TARGET_MANAGED) {
        scratch_give(t->scratch);
        target_unpin(t);
    }
    return verdict == PATH_IS_ROOT && how == TARGET_FOREIGN ? TARGET_ROOT : how;
}

/* Of a path whose text is foreign: is that all? A call that makes, removes or replaces a name may come to a root by a link. */
static bool target_is_elsewhere(int at, const char *path, unsigned want)
{
    return !(want & (TARGET_MAKES | TARGET_ALIAS)) || dead_end(at, path, want);
}

static inline bool target_is_from_descriptor(int at, const char *path)
{
    return at != AT_FDCWD && path[0] != '/';
}

/* What is not plain may still lead elsewhere, from where the process works. What a relative path says that is seen from the
 * working directory, which is not asked for again. */
static inline void target_keep_verdict(struct scratch *scratch, enum path_verdict verdict, struct scratch **seen)
{
    if (scratch == NULL || seen == NULL) {
        scratch_give(scratch);
        return;
    }
    scratch->look.verdict = verdict;
    scratch->look.is_at_parent = false;
    scratch->seen.pin = -1;
    *seen = scratch;
}

__attribute__((noinline)) static bool target_has_foreign_words_seen(int at, const char *path, struct scratch **seen)
{
    struct scratch *scratch = NULL;
    const enum path_verdict verdict = prefilter_is_plainly_foreign(path) ? PATH_FOREIGN : prefilter(&scratch, at, path);
    target_keep_verdict(scratch, verdict, verdict != PATH_FOREIGN ? seen : NULL);
    return verdict == PATH_FOREIGN;
}

static bool target_words_are_foreign(int at, const char *path, unsigned want, struct scratch **seen)
{
    if (target_is_from_descriptor(at, path))
        return target_first_look(at, path, want, seen);
    return target_has_foreign_words_seen(at, path, seen) && target_is_elsewhere(at, path, want);
}

bool target_has_foreign_words(int at, const char *path)
{
    return target_has_foreign_words_seen(at, path, NULL);
}

bool target_text_is_foreign(int at, const char *path, unsigned want)
{
    return target_words_are_foreign(at, path, want, NULL);
}

__attribute__((noinline)) static bool target_asks_if_foreign(int at, const char *path, unsigned want, struct scratch **seen)
{
    const uint32_t taken = process_taken();
    if (process_check_path(path) != 0)
        return true;
    if (!(want & (TARGET_MAKES | TARGET_ALIAS)) && prefilter_is_plainly_foreign(path)) {
        process_remember_readable(path, taken);
        return true;
    }
    return path[0] == '\0' ||
           ((seen != NULL || !target_is_from_descriptor(at, path)) && target_words_are_foreign(at, path, want, seen));
}

/* The common path: no buffer, no system call. */
bool target_is_foreign(int at, const char *path, unsigned want, struct scratch **seen)
{
    return !process_has_roots() ||
           (!(want & (TARGET_MAKES | TARGET_ALIAS)) && process_remembers_readable(path) &&
            prefilter_is_plainly_foreign(path)) ||
           target_asks_if_foreign(at, path, want, seen);
}

int target_find_further(struct target *t, int at, const char *path, unsigned want, struct scratch *seen)
{
    return target_classify(t, NULL, at, path, want, seen);
}

int target_find_text(struct target *t, int at, const char *path, unsigned want)
{
    const bool may_be_foreign = !(want & TARGET_ALIAS) && prefilter_is_plainly_foreign(path);
    if (!process_has_roots() || path[0] == '\0' || (may_be_foreign && target_is_elsewhere(at, path, want)))
        return TARGET_FOREIGN;
    return target_classify(t, NULL, at, path, want, NULL);
}

int target_find_first(struct target *t, const struct target_pair *pair, int at, const char *path, unsigned want)
{
    return pair->is_first_foreign ? TARGET_FOREIGN : target_classify(t, NULL, at, path, want, pair->seen);
}

int target_find_second(struct target *t, const struct target_pair *pair, const struct target *first, int at, const char *path,
                       unsigned want)
{
    struct scratch *seen = pair->is_first_foreign ? pair->seen : NULL;
    if (!pair->is_first_foreign && target_is_foreign(at, path, want, target_is_from_descriptor(at, path) ? NULL : &seen))
        return TARGET_FOREIGN;
    return target_classify(t, first, at, path, want, seen);
}

/* By their words; the second path ends in a name. */
__attribute__((noinline)) static bool target_have_one_parent(int at, const char *path, int second_at, const char *second)
{
    struct path_parts one, two;
    path_split(&one, path);
    path_split(&two, second);
    return at == second_at && two.last == PATH_NAME && one.parent_length == two.parent_length &&
           memcmp(path, second, one.parent_length) == 0;
}

bool target_are_foreign(struct target_pair *pair, int at, const char *path, unsigned want, int second_at, const char *second)
{
    *pair = (struct target_pair){.is_first_foreign = true};
    if (!process_has_roots())
        return true;
    const bool has_words = process_check_path(path) == 0 && path[0] != '\0';
    pair->is_first_foreign = !has_words || target_words_are_foreign(at, path, want, &pair->seen);
    if (!pair->is_first_foreign)
        return false;
    if (process_check_path(second) != 0 || second[0] == '\0')
        return true;
    const bool is_asked = has_words && target_have_one_parent(at, path, second_at, second);
    if (target_is_from_descriptor(second_at, second))
        return is_asked || target_first_look(second_at, second, TARGET_MAKES, NULL);
    return target_has_foreign_words_seen(second_at, second, &pair->seen) &&
           (is_asked || target_is_elsewhere(second_at, second, TARGET_MAKES));
}

int target_find_again(struct target *t, unsigned want)
{
    struct target before = *t;
    t->pin = -1;
    int how = target_find_text(t, before.at, before.path, want);
    target_done(&before);
    if (how != TARGET_MANAGED)
        t->scratch = NULL;
    return how;
}

void target_done(struct target *t)
{
    scratch_give(t->scratch);
    t->scratch = NULL;
    target_unpin(t);
}

int target_follow_again(struct target *t)
{
    return t->unseen ? target_find_again(t, t->want & ~(unsigned)TARGET_LATER) : TARGET_MANAGED;
}
