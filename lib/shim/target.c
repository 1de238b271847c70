/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/target.h"

#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/hook.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/cwd.h"
#include "shim/glance.h"
#include "shim/near.h"
#include "shim/parents.h"
#include "shim/process.h"
#include "union/layout.h"

#define LINKS_MAX 40 /* the kernel's MAXSYMLINKS */
#define FIND_AGAIN 2
#define TRIES_MAX 1000
#define SEEN_MAX 3
#define IDENTITY (STATX_INO | STATX_BTIME | STATX_TYPE | STATX_MODE | STATX_MNT_ID)

/* What the text says with respect to all roots. A root that was given through a symbolic link is known by
 * both texts. */
static enum path_verdict text_verdict(const char *base, const char *path)
{
    enum path_verdict verdict = PATH_FOREIGN;
    for (unsigned i = 0; i < process.count && verdict == PATH_FOREIGN; i++) {
        const struct names_root *root = &process.roots[i];
        verdict = path_verdict(root->path, base, path);
        if (verdict == PATH_FOREIGN && root->given[0] != '\0')
            verdict = path_verdict(root->given, base, path);
    }
    return verdict;
}

/* What needs no more than a look at the text: nearly every call of a program that works elsewhere. */
static inline bool is_plainly_foreign(const char *path)
{
    for (unsigned i = 0; i < process.head_count; i++)
        if (!path_is_plainly_foreign(process.heads[i], path))
            return false;
    return true;
}

static bool is_plainly_beneath(const char *path)
{
    for (unsigned i = 0; i < process.count; i++)
        if (path_is_plainly_beneath(process.roots[i].path, path))
            return true;
    return false;
}

/* Beside all roots: from there a relative path comes to one by `..` alone. */
static bool is_apart(const char *base)
{
    for (unsigned i = 0; i < process.head_count; i++)
        if (!path_is_apart(process.heads[i], base))
            return false;
    return true;
}

static bool stays_apart(int at, const char *path)
{
    return at == AT_FDCWD && path[0] != '/' && cwd_is_apart() && !path_goes_up(path);
}

/* Which working directory a path is seen from that stays apart; 0: none of which that is known. */
static uint64_t seen_from(int at, const char *path)
{
    return stays_apart(at, path) ? cwd_word() : 0;
}

/* The first sieve. A path seen from a descriptor says nothing by its text: the kernel must be asked. */
static enum path_verdict sieve(struct scratch **scratch, int at, const char *path)
{
    if (path[0] == '/' && is_plainly_beneath(path))
        return PATH_BENEATH;
    if (path[0] == '/')
        return is_plainly_foreign(path) ? PATH_FOREIGN : text_verdict(NULL, path);
    if (at != AT_FDCWD)
        return PATH_BENEATH;
    if (stays_apart(at, path))
        return PATH_FOREIGN;
    if (cwd_is_within() && path[0] != '.' && !path_goes_up(path))
        return PATH_BENEATH;
    if (*scratch == NULL && (*scratch = scratch_take()) == NULL)
        return PATH_BENEATH;
    char *base = (*scratch)->text[0];
    const uint64_t now = cwd_now();
    if (sys_getcwd(base, PATH_MAX) <= 0 || base[0] != '/')
        return PATH_FOREIGN;
    if (!is_apart(base)) {
        if (text_verdict(NULL, base) != PATH_FOREIGN)
            cwd_set_within(now);
        return text_verdict(base, path);
    }
    cwd_set_apart(now);
    return path_goes_up(path) ? text_verdict(base, path) : PATH_FOREIGN;
}

static bool on_a_root_device(uint64_t device)
{
    for (unsigned i = 0; i < process.count; i++)
        if (process.roots[i].device == device)
            return true;
    return false;
}

static bool tells_births(uint64_t device)
{
    for (unsigned i = 0; i < process.count; i++)
        if (process.roots[i].device == device && process.roots[i].id.birth != 0)
            return true;
    return false;
}

/* Who somebody is never changes, and the kernel knows it from having found him. To have it ask the file system again
 * would be one more message for each call on those that keep attributes elsewhere (FUSE, NFS). But a time of birth it
 * may not have been told yet. */
static int identify(int at, const char *path, int flags, struct statx *stat)
{
    int code = sys_statx(at, path, flags | AT_STATX_DONT_SYNC, IDENTITY, stat);
    return code == 0 && !(stat->stx_mask & STATX_BTIME) && tells_births(names_device(stat))
               ? sys_statx(at, path, flags, IDENTITY, stat)
               : code;
}

/* Loads a directory that the index does not know, if it lies under the root. 1, 0: it does not, or -errno. */
static int load_if_beneath(struct names_root *root, int fd, struct dirid id, char *text)
{
    const char *relative;
    int code = names_place_of(root, fd, text, &relative);
    return code == 1 ? (code = names_load(root, id, relative), code == 0 ? 1 : code) : code;
}

struct seeking {
    struct scratch *scratch;
    int at;
    const char *path;
    uint64_t device;
    struct dirid id;
    struct names_root **to;
};

static int seek(void *context)
{
    const struct seeking *s = context;
    int fd = s->path[0] == '\0' && s->at >= 0
                 ? s->at
                 : sys_openat(s->at, s->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) /* else it vanished, or was no directory: the native call says so */
        return fd == -EMFILE || fd == -ENFILE ? -EMFILE : 0;
    int code = 0;
    for (unsigned i = 0; i < process.count && code == 0; i++)
        if (process.roots[i].device == s->device) {
            code = load_if_beneath(&process.roots[i], fd, s->id, s->scratch->real);
            *s->to = &process.roots[i];
        }
    if (fd != s->at)
        sys_close(fd);
    return code;
}

static int find_by_place(struct scratch *scratch, int at, const char *path, uint64_t device, struct dirid id,
                         struct names_root **to)
{
    struct seeking seeking = {scratch, at, path, device, id, to};
    int code = seek(&seeking);
    if (code != -EMFILE)
        return code;
    uint64_t before = sys_block_signals();
    code = apart_run(seek, &seeking, at);
    sys_set_signals(before);
    return code;
}

static bool is_loaded(const struct view_found *found)
{
    return found->dir_known && (found->dir.flags & RECORD_LOADED);
}

/* Is the index of an attached root aware of that directory? 1, 0, or -errno. A root that cannot be attached
 * is passed over here: whether the directory is beneath it is seen from its place. */
static int find_by_identity(uint64_t device, struct dirid id, const char *name, size_t length,
                            struct names_root **to, struct view_found *found)
{
    for (unsigned i = 0; i < process.count; i++) {
        struct names_root *root = &process.roots[i];
        if (root->device != device || !names_is_attached(root))
            continue;
        int code = names_find(root, id, name, length, found);
        if (code != 0)
            return code;
        if (is_loaded(found)) {
            *to = root;
            return 1;
        }
    }
    return 0;
}

/* Which root holds the directory (at, path), whose identity is known; its record and the name's are looked
 * up. 1, 0, FIND_AGAIN or -errno. */
static int find_root_once(struct scratch *scratch, int at, const char *path, uint64_t device, struct dirid id,
                          const char *name, size_t length, struct names_root **root, struct view_found *found)
{
    if (!on_a_root_device(device) || process_is_foreign(device, id))
        return 0;
    int code = find_by_identity(device, id, name, length, root, found);
    if (code != 0)
        return code;
    code = find_by_place(scratch, at, path, device, id, root);
    if (code == -ENAMETOOLONG) /* too deep to be served; not for ever, if one above is renamed */
        return 0;
    if (code == 0)
        process_set_foreign(device, id);
    if (code != 1)
        return code;
    code = names_find(*root, id, name, length, found);
    return code != 0 ? code : is_loaded(found) ? 1 : FIND_AGAIN;
}

/* The daemon that loaded it may have been followed by another one. */
static int find_root(struct scratch *scratch, int at, const char *path, uint64_t device, struct dirid id,
                     const char *name, size_t length, struct names_root **root, struct view_found *found)
{
    int code = FIND_AGAIN;
    for (int i = 0; code == FIND_AGAIN && i < TRIES_MAX; i++)
        code = find_root_once(scratch, at, path, device, id, name, length, root, found);
    return code == FIND_AGAIN ? -EIO : code;
}

uint64_t target_mount(const struct statx *stat)
{
    return stat->stx_mask & STATX_MNT_ID ? stat->stx_mnt_id : 0;
}

int target_parent_text(const char *path, size_t length, char to[PATH_MAX])
{
    if (length > PATH_MAX - 2)
        return -ENAMETOOLONG;
    memcpy(to, path, length);
    to[length] = '.';
    to[length + 1] = '\0';
    return 0;
}

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
    int code = parts.length > RECORD_NAME_MAX
                   ? -ENAMETOOLONG
                   : target_parent_text(path, parts.parent_length, scratch->text[0]);
    if (code == 0)
        code = sys_statx(at, scratch->text[0], 0, STATX_TYPE, &stat);
    scratch_give(scratch);
    return code != 0 ? code : parts.last != PATH_NAME ? -EBUSY : 0;
}

static void set_words(struct target *t, int at, const char *path, const struct path_parts *parts)
{
    t->at = at;
    t->path = path;
    t->name = parts->name;
    t->length = (uint32_t)parts->length;
    t->parent_length = (uint32_t)parts->parent_length;
    t->slash = parts->slash;
    t->moment = 0;
    t->unasked = t->unseen = t->guessed = t->foreign = false;
}

/* The kernel found no parent at `text` (which is changed). Where the first component that it misses is a file
 * in a branch, it would have said ENOTDIR had the file been there: -ENOTDIR, else TARGET_COLD. */
static int missing_parent(int at, char *text)
{
    struct target first;
    struct statx stat;
    char *end = text + strlen(text) - 1; /* the dot of `parent/.` */
    while (end > text) {
        while (end > text && end[-1] == '/')
            end--;
        *end = '\0'; /* `text` names what is missing; is its own parent there? */
        while (end > text && end[-1] != '/')
            end--;
        char kept = *end;
        *end = '\0';
        int code = end > text ? sys_statx(at, text, 0, STATX_TYPE, &stat) : 0;
        *end = kept;
        if (code == -ENOENT)
            continue;
        if (code != 0 || target_find(&first, at, text, TARGET_FOLLOW | TARGET_ALIAS) != TARGET_HOT)
            return TARGET_COLD;
        code = (int)TARGET_CALL(
            &first, sys_statx(first.real_at, first.real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat));
        code = code == 0 && target_is_away(&first) ? -ENOTDIR : TARGET_COLD;
        target_done(&first);
        return code;
    }
    return TARGET_COLD;
}

/* BRANCH/MIRROR/LEAF, as answers tell a place, taken apart as the index would have it. */
static bool take_place(struct view_found *found, const char *place, size_t length)
{
    const char *mirror = memchr(place, '/', length);
    const char *leaf = mirror != NULL ? memrchr(place, '/', length) : NULL;
    if (leaf == mirror || (size_t)(mirror - place) >= sizeof found->branch ||
        (size_t)(leaf - mirror - 1) >= sizeof found->dir.mirror)
        return false;
    struct text branch, name;
    text_init(&branch, found->branch, sizeof found->branch);
    text_bytes(&branch, place, (size_t)(mirror - place));
    text_init(&name, found->dir.mirror, sizeof found->dir.mirror);
    text_bytes(&name, mirror + 1, (size_t)(leaf - mirror - 1));
    return true;
}

int target_learn(struct target *t, int result)
{
    const struct message *answer = &t->scratch->answer.message;
    t->found.known = result == MESSAGE_EXISTS;
    t->found.entry = answer->entry[0];
    return t->found.known && t->found.entry.branch != 0 &&
                   !take_place(&t->found, answer->name[0], answer->name_length[0])
               ? -EIO
               : 0;
}

/* The file under the name, and nobody else's: a name has one place, so whoever is there under that name is it. */
static bool is_there(struct target *t)
{
    struct statx stat;
    int code;
    if (target_place(t) != 0)
        return false;
    target_come_to_leaf(t);
    do
        code = sys_statx(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, STATX_INO, &stat);
    while (target_goes_on(t, code));
    return code == 0 && stat.stx_ino == t->found.entry.ino;
}

/* Leaves of other nodes whose owners have been told that this process looks into them; of two with one place here the last. A
 * listing goes to and fro between all leaves of a mirror, so these have places of their own. */
#define TOLD 1024
static uint32_t told_leaves[TOLD];

struct told {
    uint32_t *place, word;
};

static struct told told_of(const struct target *t)
{
    const uint64_t dir = record_sum(&t->dir, sizeof t->dir, 0);
    const uint64_t mirror = record_sum(t->found.branch, strlen(t->found.branch), dir);
    const uint32_t leaf = t->found.entry.leaf;
    return (struct told){&told_leaves[(mirror + leaf) % TOLD], (uint32_t)(mirror >> 32) ^ leaf};
}

static bool is_told(struct told leaf)
{
    return __atomic_load_n(leaf.place, __ATOMIC_RELAXED) == leaf.word;
}

static void set_told(struct told leaf)
{
    __atomic_store_n(leaf.place, leaf.word, __ATOMIC_RELAXED);
}

/* Its home knows that it is looked at, or need not. */
static bool has_asked(const struct target *t)
{
    return t->found.entry.branch == 0 || is_told(told_of(t));
}

/* The home of a name has told the owner of its leaf. */
static void set_asked(const struct target *t)
{
    if (t->found.entry.branch != 0)
        set_told(told_of(t));
}

/* It was found in the index, so nobody has told the owner of its leaf, who has to know once; and each time of a file that may be
 * made there just now. */
static void tell_look(const struct target *t)
{
    if (!names_is_of_others(t->root, &t->found.entry))
        return;
    const struct told leaf = told_of(t);
    if (t->found.entry.state != RECORD_PENDING && is_told(leaf))
        return;
    set_told(leaf);
    names_looked(t->root, t->dir, t->name, t->length, &t->found.entry);
}

/* Somebody of this node has asked before, and the file is still where it was; or the call finds that out: in a branch there
 * is nothing but files that have this name. In the trunk a link might be there by now, and lead the call elsewhere. */
static bool recall(struct target *t, unsigned want)
{
    char mirror[RECORD_MIRROR_MAX];
    bool foreseen;
    memcpy(mirror, t->found.dir.mirror, sizeof mirror);
    t->found.known = names_recall(t->root, t->dir, t->name, t->length, &t->found, &foreseen);
    if (!t->found.known)
        return false;
    t->guessed = (want & TARGET_LOOKS) && t->found.entry.branch != 0;
    if ((foreseen && !has_asked(t)) || (!t->guessed && !is_there(t))) {
        memcpy(t->found.dir.mirror, mirror, sizeof mirror);
        t->found.known = t->guessed = false;
    }
    return t->found.known;
}

static void remember(const struct target *t)
{
    names_remember(t->root, t->dir, t->name, t->length, &t->found.entry, t->found.branch, t->found.dir.mirror);
}

void target_has_made(struct target *t, const struct statx *stat)
{
    if (names_has_all(t->root, t->dir, t->name, t->length, &t->found) || target_learn(t, MESSAGE_EXISTS) != 0)
        return;
    t->found.entry.state = RECORD_LIVE;
    t->found.entry.ino = stat->stx_ino;
    remember(t);
}

static int ask(struct target *, struct target *other, struct message *, struct request_hold *);

/* Another node's daemon is home of the name: it is asked, and answers when nobody is at work on it. -ESTALE: another directory
 * is where the words lead by now. */
static int ask_home(struct target *t)
{
    struct message lookup = {.type = MESSAGE_LOOKUP};
    int code = ask(t, NULL, &lookup, NULL);
    code = code < 0 ? code : target_learn(t, code);
    if (code == 0 && t->found.known && t->found.entry.state == RECORD_LIVE) {
        remember(t);
        set_asked(t);
    }
    return code;
}

/* Whoever looks at names of a directory that nobody of this node has seen, one after the other, is told of many at once: in
 * the order of a listing (ls -l, find, tar, rsync) of those that come next, after so many in that order, which by chance
 * one in 40,000 would be. In any other order (each rank reads what its neighbour has written) of some, after so many that
 * he had to ask for, then of those behind them, so that of a directory of some thousand names he soon knows all. Where that
 * is a small part of them, and where all were told before, it is after twice as many each time, so that it is few questions
 * where it is in vain. All these are one program's affair, and threads that are in each other's way there ask for each name. */
#define IN_ORDER 8
#define ENOUGH_MAX (1u << 20)
#define SMALL_PART (UINT64_MAX / 16)
static struct {
    uint64_t dir, last, foreseen;
    uint32_t count, asked, enough;
} order;
#define ORDER(FIELD) __atomic_load_n(&order.FIELD, __ATOMIC_RELAXED)
#define SET_ORDER(FIELD, TO) __atomic_store_n(&order.FIELD, TO, __ATOMIC_RELAXED)

static void begin_order(uint64_t dir)
{
    SET_ORDER(dir, dir);
    SET_ORDER(last, UINT64_MAX);
    SET_ORDER(foreseen, 0);
    SET_ORDER(count, 0);
    SET_ORDER(asked, 0);
    SET_ORDER(enough, IN_ORDER);
}

/* From which hash on; UINT64_MAX: nothing is foreseen. *in_order: since they are. */
static uint64_t foresee_from(uint64_t dir, uint64_t hash, bool *in_order)
{
    if (ORDER(dir) != dir)
        begin_order(dir);
    const uint32_t count = ORDER(last) < hash ? ORDER(count) + 1 : 0, asked = ORDER(asked) + 1;
    const uint64_t foreseen = ORDER(foreseen);
    SET_ORDER(last, hash);
    SET_ORDER(count, count);
    SET_ORDER(asked, asked);
    *in_order = count == IN_ORDER || (count > IN_ORDER && hash > foreseen);
    if (*in_order)
        return hash;
    return asked < ORDER(enough) ? UINT64_MAX : foreseen == UINT64_MAX ? 0 : foreseen;
}

static bool foresee(struct target *t)
{
    const uint64_t dir = record_sum(&t->dir, sizeof t->dir, 0), hash = record_hash(t->name, t->length);
    bool in_order;
    const uint64_t from = foresee_from(dir, hash, &in_order);
    const uint32_t enough = ORDER(enough);
    if (from == UINT64_MAX)
        return false;
    const uint64_t until = names_foresee(t->root, t->dir, t->found.dir.mirror, from, &t->scratch->answer);
    if (!in_order && enough < ENOUGH_MAX && (until == UINT64_MAX || until - from < SMALL_PART))
        SET_ORDER(enough, 2 * enough);
    SET_ORDER(asked, 0);
    SET_ORDER(foreseen, until);
    return true;
}

static bool is_elsewhere(const struct target *t)
{
    return t->found.dir_known && !t->found.known && t->length > 0 &&
           !names_has_all(t->root, t->dir, t->name, t->length, &t->found);
}

/* What the index cannot say of the name. Who looks again does so because of what was found before, and is told by the home
 * itself. */
static int look_further(struct target *t, unsigned want, bool again)
{
    if (t->found.known)
        tell_look(t);
    return !is_elsewhere(t) || (!again && (recall(t, want) || (foresee(t) && recall(t, want)))) ? 0 : ask_home(t);
}

static bool is_same_parent(const struct target *t, const struct target *first)
{
    return first != NULL && first->parent != TARGET_PARENT_UNSEEN && first->at == t->at &&
           first->parent_length == t->parent_length && memcmp(first->path, t->path, t->parent_length) == 0;
}

/* What is under the name in the parent that `first` has, too. */
static int find_in_parent_of(struct target *t, const struct target *first)
{
    t->parent = first->parent;
    if (t->parent == TARGET_PARENT_FOREIGN)
        return TARGET_COLD;
    t->dir = first->dir;
    t->mount = first->mount;
    t->root = first->root;
    int code = target_look(t);
    return code == 0 ? TARGET_HOT : code;
}

/* A name that is being replaced has the type of what was there before: the file system knows better. Links
 * are in the trunk alone. */
static bool may_be_link(const struct record_entry *entry)
{
    return entry->type == DT_LNK || (entry->state == RECORD_PENDING && entry->branch == 0);
}

/* A name that is to be made, and of which nothing is known: its home is asked before anything is done. */
static bool find_new(struct target *t)
{
    t->unseen = !t->found.known && !t->slash;
    t->unasked = t->unseen && is_elsewhere(t);
    return t->unseen;
}

/* In the directory that was found: what is known of the name, unless its home is asked anyway. TARGET_HOT or -errno. */
static int find_name(struct target *t, unsigned want)
{
    t->parent = TARGET_PARENT_OURS;
    t->unasked = (want & TARGET_ASKS) && !t->slash && is_elsewhere(t);
    int code = t->unasked ? 0 : look_further(t, want, false);
    return code == 0 ? TARGET_HOT : code;
}

/* A file that is known where the words led to before. False: let the kernel say where they lead. */
static bool find_known(struct target *t, unsigned want)
{
    const bool seen = is_elsewhere(t) && recall(t, want);
    if (!t->found.known || t->found.entry.state == RECORD_DYING || t->found.entry.type != DT_REG ||
        may_be_link(&t->found.entry))
        return false;
    if (!seen)
        tell_look(t);
    return true;
}

/* A name in the directory that the words led to before. TARGET_HOT, -errno, or TARGET_COLD: let the kernel say where they
 * lead. */
static int find_in_remembered(struct target *t, const struct parents_words *words, unsigned want)
{
    struct parent parent;
    if (!parents_recall(words, &parent, &t->moment))
        return TARGET_COLD;
    const bool makes = want & TARGET_MAKES, there = makes && parents_are_there(&parent, t->scratch);
    if (makes && !there && !(want & TARGET_LATER))
        return TARGET_COLD;
    t->root = parent.root;
    t->dir = parent.dir;
    t->mount = parent.mount;
    if (names_find(t->root, t->dir, t->name, t->length, &t->found) != 0 || !is_loaded(&t->found))
        return TARGET_COLD;
    if (there)
        return find_name(t, want);
    return (makes ? find_new(t) : find_known(t, want)) ? TARGET_HOT : TARGET_COLD;
}

/* The same where the kernel says they lead. -ESTALE: to another directory by now. */
static int find_in_seen(struct target *t, const struct parents_words *words, const struct path_parts *parts, unsigned want,
                        char *text)
{
    struct statx stat;
    if (target_parent_text(t->path, parts->parent_length, text) != 0)
        return TARGET_COLD;
    int code = identify(t->at, text, 0, &stat);
    if (code != 0) /* the native call meets the same error */
        return code == -ENOENT && parts->parent_length > 0 ? missing_parent(t->at, text) : TARGET_COLD;
    if (parts->last == PATH_DOTS)
        return TARGET_COLD;
    t->dir = dirid_of(&stat);
    t->mount = target_mount(&stat);
    code =
        find_root(t->scratch, t->at, text, names_device(&stat), t->dir, t->name, t->length, &t->root, &t->found);
    t->parent = code == 0 ? TARGET_PARENT_FOREIGN : TARGET_PARENT_UNSEEN;
    if (code != 1)
        return code;
    parents_learn(words, &(struct parent){.root = t->root, .dir = t->dir, .mount = t->mount}, t->scratch);
    return find_name(t, want);
}

/* Resolves the parent. TARGET_HOT, TARGET_COLD or -errno. */
static int find_parent(struct target *t, const struct target *first, int at, const char *path, unsigned want,
                       char *text)
{
    struct path_parts parts;
    path_split(&parts, path);
    set_words(t, at, path, &parts);
    if (parts.last == PATH_NONE || (parts.last == PATH_DOTS && parts.parent_length == 0) ||
        parts.length > RECORD_NAME_MAX || parts.parent_length + parts.length >= PATH_MAX)
        return TARGET_COLD; /* too long a text the native call refuses, too */
    if (parts.last == PATH_NAME && is_same_parent(t, first))
        return find_in_parent_of(t, first);
    const struct parents_words words = parents_words(at, path, parts.parent_length);
    int code = parts.last == PATH_NAME ? find_in_remembered(t, &words, want) : TARGET_COLD;
    if (code == TARGET_COLD)
        code = find_in_seen(t, &words, &parts, want, text);
    for (int i = 0; code == -ESTALE && i < TRIES_MAX; i++)
        code = find_in_seen(t, &words, &parts, want, text);
    return code;
}

/* Writes where a symbolic link at (at, path) leads, seen from the same `at`; 0, or -errno: it is none. */
static int read_link(int at, const char *path, size_t parent_length, bool slash, char *to)
{
    char *end = to;
    size_t room = PATH_MAX;
    ssize_t length;
    /* A link's text takes the place of its name: kept behind the parent's text unless it is absolute. */
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

/* What /proc calls links are the files themselves, which the kernel follows to; their text is only a
 * description. But a path that begins there may lead out of it (/proc/self/cwd/link). The parent's text is
 * in the scratch, as find_parent left it. */
static bool is_in_proc(const struct target *t)
{
    struct statfs fs;
    return strncmp(t->path, "/proc/", 6) == 0 && SYS2(SYS_statfs, t->scratch->text[0], &fs) == 0 &&
           fs.f_type == PROC_SUPER_MAGIC;
}

/* Is there anything to be followed at the target's end? Of a name in the index its type says so; of any other
 * the file system. */
static bool ends_in_link(const struct target *t, int how, unsigned want)
{
    /* A slash behind a link makes the kernel follow it, but not where the name itself is made, removed or
     * moved. */
    if (t->slash ? (want & TARGET_MAKES) != 0 : !(want & TARGET_FOLLOW))
        return false;
    if (how == TARGET_HOT)
        return t->found.known && may_be_link(&t->found.entry);
    return (want & (TARGET_MAKES | TARGET_ALIAS)) != 0 && t->length > 0 && !is_in_proc(t);
}

static int resolve(struct target *t, const struct target *first, int at, const char *path, unsigned want)
{
    char *parent = t->scratch->text[0], *link = t->scratch->text[1];
    int how = find_parent(t, first, at, path, want, parent);
    for (int links = 0; how >= 0 && ends_in_link(t, how, want); links++) {
        if (links == LINKS_MAX)
            return how == TARGET_HOT ? -ELOOP : TARGET_COLD;
        size_t parent_length = t->parent_length;
        /* without the trailing slash, which would make the kernel follow it */
        char *plain = t->scratch->real;
        size_t plain_length = parent_length + t->length;
        if (plain_length >= PATH_MAX)
            return TARGET_COLD;
        memcpy(plain, t->path, plain_length);
        plain[plain_length] = '\0';
        if (read_link(t->at, plain, parent_length, t->slash, link) != 0)
            break;
        how = find_parent(t, NULL, t->at, link, want & TARGET_MAKES, parent);
        t->parent = TARGET_PARENT_UNSEEN; /* these are not the caller's words */
    }
    return how;
}

static bool is_own(const struct target *t)
{
    return layout_is_ours(t->name, t->length, dirid_equal(t->dir, t->root->id));
}

static int find_beneath(struct target *t, const struct target *first, int at, const char *path, unsigned want)
{
    if (t->scratch == NULL && (t->scratch = scratch_take()) == NULL)
        return -ENOMEM;
    int how = resolve(t, first, at, path, want);
    if (how != TARGET_HOT || !is_own(t))
        return how;
    t->found.known = false; /* names that shunt keeps for itself do not exist for an application */
    return want & TARGET_MAKES ? -EPERM : -ENOENT;
}

__attribute__((noinline)) static int find(struct target *t, const struct target *first, int at,
                                          const char *path, unsigned want)
{
    t->scratch = NULL;
    t->parent = TARGET_PARENT_UNSEEN;
    t->again = 0;
    t->want = (uint8_t)want;
    t->leaf = -1;
    if (strnlen(path, PATH_MAX) == PATH_MAX) /* the native call refuses it, and reads no further either */
        return TARGET_COLD;
    enum path_verdict verdict = sieve(&t->scratch, at, path);
    uint64_t from = want & TARGET_ALIAS ? seen_from(at, path) : 0;
    int how = TARGET_COLD;
    if (want & TARGET_MAKES)
        process_made_name();
    if (from != 0 && process_is_dead_end_from(from, path))
        want &= ~TARGET_ALIAS;
    if (verdict == PATH_BENEATH || (verdict == PATH_FOREIGN && (want & (TARGET_MAKES | TARGET_ALIAS))))
        how = find_beneath(t, first, at, path, want);
    if (how == TARGET_COLD && verdict == PATH_FOREIGN && (want & TARGET_ALIAS) &&
        (path[0] == '/' || (from != 0 && from == seen_from(at, path))))
        process_set_dead_end(from, path);
    if (how != TARGET_HOT)
        scratch_give(t->scratch);
    return verdict == PATH_IS_ROOT && how == TARGET_COLD ? TARGET_ROOT : how;
}

/* The common path: no buffer, no system call. */
int target_find(struct target *t, int at, const char *path, unsigned want)
{
    if (!process_has_roots() || !process_can_read(path) || path[0] == '\0')
        return TARGET_COLD;
    if (!(want & (TARGET_MAKES | TARGET_ALIAS)) && is_plainly_foreign(path))
        return TARGET_COLD;
    return find(t, NULL, at, path, want);
}

int target_find_second(struct target *t, const struct target *first, int at, const char *path, unsigned want)
{
    if (!process_has_roots() || !process_can_read(path) || path[0] == '\0')
        return TARGET_COLD;
    return find(t, first, at, path, want);
}

int target_find_alias(struct target *t, int at, const char *path, unsigned want)
{
    /* The kernel has read it; but some calls take NULL for the descriptor itself. */
    if (process.count == 0 || path == NULL || (path[0] == '/' && process_is_dead_end(path)))
        return TARGET_COLD;
    return target_find(t, at, path, want | TARGET_ALIAS);
}

int target_find_anew(struct target *t, unsigned want)
{
    struct target before = *t;
    int how = target_find(t, before.at, before.path, want);
    target_done(&before);
    if (how != TARGET_HOT)
        t->scratch = NULL;
    return how;
}

void target_done(struct target *t)
{
    scratch_give(t->scratch);
    t->scratch = NULL;
}

static bool has_empty_part(const char *place, size_t length)
{
    for (const char *at = place, *end = place + length; (at = memchr(at, '/', (size_t)(end - at))) != NULL; at++)
        if (at + 1 < end && at[1] == '/')
            return true;
    return false;
}

int target_place_at(struct target *t, const char *place, size_t length)
{
    struct text text;
    t->real_at = t->at;
    t->real_path = t->path;
    if (length == 0)
        return 0;
    if (has_empty_part(place, length)) /* nothing is to be looked for, or missed, where no mirror is */
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

/* The rest of a place in a branch, behind the directory of branches: BRANCH/MIRROR/LEAF/NAME; NULL: it is in no branch. */
static const char *behind_branches(const struct target *t)
{
    const size_t root = strlen(t->root->path), branches = sizeof "/" LAYOUT_BRANCHES "/" - 1;
    const char *real = t->scratch->real;
    return target_was_away(t) && strncmp(real + root, "/" LAYOUT_BRANCHES "/", branches) == 0 ? real + root + branches
                                                                                               : NULL;
}

static void come_near(struct target *t, const char *place)
{
    const bool is_near = names_is_far(t->root) && near_branches(t->root, &t->real_at);
    t->real_at = is_near ? t->real_at : AT_FDCWD;
    t->real_path = is_near ? place : t->scratch->real;
}

void target_come_near(struct target *t)
{
    const char *place = behind_branches(t);
    if (place != NULL)
        come_near(t, place);
}

static void come_to_leaf(struct target *t, bool to_look)
{
    const char *place = behind_branches(t);
    const size_t length = place != NULL ? strlen(place) - t->slash - t->length - 1 : 0;
    t->leaf = place != NULL ? (int8_t)near_leaf(t->root, place, length, to_look, &t->real_at) : -1;
    t->by_leaf = t->leaf >= 0;
    if (t->by_leaf)
        t->real_path = place + length + 1;
    else if (place != NULL)
        come_near(t, place);
}

void target_come_to_leaf(struct target *t)
{
    t->leaf = -1;
    t->by_leaf = false;
    if (names_is_far(t->root))
        come_to_leaf(t, false);
}

void target_come_to_look(struct target *t)
{
    come_to_leaf(t, true);
}

/* Who had a lease behind that was not lost before; whoever goes by the path needs none. */
bool target_leaf_holds(const struct target *t)
{
    return !t->by_leaf || BROKEN("leaf-without-a-look") ||
           (near_leaf_is_kept(t->root, t->leaf) && request_has_lease(t->scratch->hold.road));
}

bool target_goes_on(struct target *t, long result)
{
    const int leaf = t->leaf;
    if (leaf < 0)
        return false;
    if (t->by_leaf && near_may_be_elsewhere(result)) {
        t->by_leaf = false;
        come_near(t, behind_branches(t));
        return true;
    }
    if (t->by_leaf && result >= 0)
        glance_keep(t, leaf);
    if (t->by_leaf || result < 0)
        near_give(t->root, leaf);
    else
        near_give_up(t->root, leaf);
    t->leaf = -1;
    return false;
}

static int place_in_branch(struct target *t)
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
    return target_is_away(t) ? place_in_branch(t) : target_place_at(t, NULL, 0);
}

/* The root's own path of the parent, in scratch->real. */
static bool parent_by_root(struct target *t, struct text *text)
{
    const char *relative;
    struct statx stat;
    char *words = t->scratch->text[0];
    if (target_parent_text(t->path, t->parent_length, words) != 0)
        return false;
    int fd = sys_openat(t->at, words, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    int code = names_place_of(t->root, fd, words, &relative);
    sys_close(fd);
    text_init(text, t->scratch->real, PATH_MAX);
    text_add(text, t->root->path);
    text_add(text, "/");
    text_add(text, code == 1 ? relative : ".");
    return code == 1 && text_ok(text) && identify(AT_FDCWD, text->at, 0, &stat) == 0 &&
           dirid_equal(dirid_of(&stat), t->dir);
}

bool target_place_by_root(struct target *t)
{
    struct text text;
    if (t->real_path != t->path || !parent_by_root(t, &text))
        return false;
    text_add(&text, "/");
    text_bytes(&text, t->name, t->length);
    if (t->slash)
        text_add(&text, "/");
    t->real_at = AT_FDCWD;
    t->real_path = text.at;
    return text_ok(&text);
}

/* Another directory may be where the words lead by now (-ESTALE). In between there was nothing, and so nothing is there. */
static int gone(int code)
{
    return code == -ESTALE ? -ENOENT : code;
}

/* The index may be that of another daemon by now, or have been begun anew: then the directory is loaded again. Where the
 * words do not lead to it any more, nothing is known of the name. */
int target_look(struct target *t)
{
    t->unasked = false;
    int code = names_find(t->root, t->dir, t->name, t->length, &t->found), loaded = 0;
    for (int i = 0; code == 0 && loaded == 0 && !is_loaded(&t->found) && i < TRIES_MAX; i++)
        if ((loaded = target_load(t)) == 0)
            code = names_find(t->root, t->dir, t->name, t->length, &t->found);
    if (loaded == -EIO)
        return loaded;
    return code == 0 ? gone(look_further(t, 0, true)) : code;
}

int target_settled(struct target *t)
{
    struct message lookup = {.type = MESSAGE_LOOKUP};
    if (!t->found.known || t->found.entry.state == RECORD_LIVE)
        return 0;
    int code = target_ask(t, &lookup);
    return code < 0 ? code : target_look(t);
}

int target_load(struct target *t)
{
    char *text = t->scratch->text[0];
    struct names_root *root;
    if (target_parent_text(t->path, t->parent_length, text) != 0)
        return -ENAMETOOLONG;
    int code = find_by_place(t->scratch, t->at, text, t->root->device, t->dir, &root);
    return code == 1 ? 0 : code == 0 ? -ENOENT : code;
}

static void address(const struct target *t, struct message *message)
{
    message->dir[0] = t->dir;
    message->name[0] = t->name;
    message->name_length[0] = (uint16_t)t->length;
}

static bool gives_leave(const struct message *message, int result)
{
    return result == 0 || (message->type == MESSAGE_RENAME && result == MESSAGE_EXISTS);
}

/* Do its words lead to another directory by now, or to none? */
static bool leads_elsewhere(struct target *t)
{
    struct statx stat;
    char *text = t->scratch->text[0];
    return target_parent_text(t->path, t->parent_length, text) != 0 || identify(t->at, text, 0, &stat) != 0 ||
           !dirid_equal(dirid_of(&stat), t->dir) || target_mount(&stat) != t->mount;
}

/* While the daemon is at work: it stays unseen if memory was wrong. */
static void see_parent(void *context)
{
    struct target *t = context;
    t->unseen = t->unseen && leads_elsewhere(t);
}

static int ask_for_leave(struct target *t, struct message *message, struct request_hold *hold)
{
    hold->meanwhile = t->unseen ? see_parent : NULL;
    hold->context = t;
    int code = names_hold(t->root, message, &t->scratch->answer, hold);
    hold->meanwhile = NULL; /* others ask with the same scratch */
    return code;
}

/* Leave was asked for, and another directory is where the words lead by now: who makes a file follows them anew, for others
 * nothing is there (gone). */
static int replaced(struct target *t)
{
    t->unseen = t->want & TARGET_LATER;
    return t->unseen ? TARGET_ASTRAY : -ENOENT;
}

/* A directory that is at another place than the daemon thought is loaded again, i.e. told its place. */
static int ask(struct target *t, struct target *other, struct message *message, struct request_hold *hold)
{
    address(t, message);
    for (int i = 0; i < TRIES_MAX; i++) {
        int code = hold != NULL ? ask_for_leave(t, message, hold)
                                : names_ask(t->root, message, &t->scratch->answer);
        if (code != 0)
            return code;
        code = t->scratch->answer.message.result;
        const bool astray = hold != NULL && t->unseen;
        if (hold != NULL && !gives_leave(message, code))
            request_let_go(hold);
        else if (astray)
            target_withdraw(t);
        if (astray)
            return TARGET_ASTRAY;
        if (code != MESSAGE_NOT_LOADED)
            return code;
        code = target_load(t);
        if (code == 0 && other != NULL)
            code = target_load(other);
        if (code == -ESTALE && hold != NULL)
            return replaced(t);
        if (code != 0)
            return code;
    }
    return -EIO;
}

int target_ask(struct target *t, struct message *message)
{
    return gone(ask(t, NULL, message, NULL));
}

int target_hold(struct target *t, struct message *message)
{
    return ask(t, NULL, message, &t->scratch->hold);
}

int target_hold_both(struct target *t, struct target *other, struct message *message)
{
    return ask(t, other, message, &t->scratch->hold);
}

void target_tell(struct target *t, struct message *message)
{
    address(t, message);
    names_tell(t->root, message);
    request_let_go(&t->scratch->hold);
}

void target_withdraw(struct target *t)
{
    struct message withdraw = {.type = MESSAGE_WITHDRAW};
    address(t, &withdraw);
    names_withdraw(t->root, &withdraw, &t->scratch->hold);
}

/* The kernel says that a directory may not be changed before it says what is in it. */
bool target_parent_is_writable(struct target *t)
{
    char *text = t->scratch->text[0];
    if (target_parent_text(t->path, t->parent_length, text) != 0)
        return true;
    return SYS4(SYS_faccessat2, t->at, text, W_OK | X_OK, AT_EACCESS) != -EACCES;
}

bool target_parent_is_read_only(struct target *t)
{
    char *text = t->scratch->text[0];
    return target_parent_text(t->path, t->parent_length, text) == 0 &&
           SYS4(SYS_faccessat2, t->at, text, W_OK, AT_EACCESS) == -EROFS;
}

/* A program without the shim made it: from now on the index knows it. */
static void adopt(struct target *t)
{
    struct statx stat;
    if (sys_statx(t->at, t->path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO, &stat) != 0)
        return;
    HOOK("adopt-found");
    struct message message = {
        .type = MESSAGE_ADOPT,
        .entry[0] = {.type = (uint8_t)(stat.stx_mode >> 12 & 15), .state = RECORD_LIVE, .ino = stat.stx_ino}};
    target_ask(t, &message);
}

/* The file is not where a live entry says. The daemon takes the entry off, or knows better: look again,
 * either way. But if the file is there each time, the call missed something else: its other path, or words
 * that lead there no more. */
static bool vanished(struct target *t)
{
    if (leads_elsewhere(t)) /* it is not the file that has gone */
        return false;
    struct message message = {.type = MESSAGE_VANISHED, .entry[0] = t->found.entry};
    int code = target_ask(t, &message);
    if (code == MESSAGE_CHANGED && t->again++ == SEEN_MAX)
        return false;
    return code >= 0 && target_look(t) == 0;
}

/* It was not where this node remembered it: its words are followed once more, in the end perhaps natively. */
static bool follow_anew(struct target *t, long *result)
{
    struct scratch *scratch = t->scratch;
    const char *path = t->path;
    const int at = t->at;
    int how = find(t, NULL, at, path, t->want & ~(unsigned)TARGET_LOOKS);
    if (how == TARGET_HOT) {
        scratch_give(scratch);
        return true;
    }
    t->scratch = scratch;
    t->path = path;
    t->at = at;
    t->found.known = false;
    t->foreign = true;
    process_made_name(); /* it is no dead end: nothing has said that nothing is there */
    if (how < 0)
        *result = how;
    return how >= 0;
}

static bool can_look(struct target *t, long *result)
{
    int code = target_look(t);
    if (code != 0 && code != -ENOENT) /* nobody knows */
        *result = code;
    return code == 0;
}

/* What has become of a file that is not where it is known to be. */
static bool look_again(struct target *t, long *result)
{
    struct record_entry before = t->found.entry;
    if (!can_look(t, result) || !t->found.known)
        return false;
    if (!record_same(&before, &t->found.entry))
        return true;
    return t->found.entry.state == RECORD_LIVE && vanished(t);
}

bool target_again(struct target *t, long *result)
{
    if (!t->found.known && *result >= 0 && !t->foreign)
        adopt(t);
    if (!t->found.known || *result != -ENOENT || BROKEN("no-second-look"))
        return false;
    return t->guessed ? follow_anew(t, result) : look_again(t, result);
}

bool target_was_away(const struct target *t)
{
    const char *real = t->scratch->real;
    return t->real_path >= real && t->real_path < real + sizeof t->scratch->real; /* from nearby it begins behind that */
}

bool target_has_moved(struct target *t, long *result)
{
    if (*result != -ENOENT || !target_was_away(t))
        return false;
    return t->found.known ? target_again(t, result) : t->again++ < SEEN_MAX && can_look(t, result);
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
        busy = target_again(t, &result) || (t->found.known && t->found.entry.state != RECORD_LIVE);
    } while (busy);
}

int target_directory(int at, const char *path, int flags, struct names_root **root, struct dirid *id,
                     struct view_found *found)
{
    struct statx stat;
    if (!process_has_roots() || identify(at, path, flags, &stat) != 0 ||
        (stat.stx_mode & S_IFMT) != S_IFDIR || !on_a_root_device(names_device(&stat)))
        return 0;
    struct scratch *scratch = scratch_take();
    if (scratch == NULL)
        return -ENOMEM;
    *id = dirid_of(&stat);
    int code = find_root(scratch, at, path, names_device(&stat), *id, NULL, 0, root, found);
    scratch_give(scratch);
    return code;
}
