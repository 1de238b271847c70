/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What concerns a directory and its mirrors as a whole. */

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/sys.h"
#include "base/text.h"
#include "path/path.h"
#include "shim/operations.h"
#include "shim/process.h"
#include "shim/root_of.h"
#include "shim/scratch.h"

#define TRIES_MAX 1000

static int operate_directory_load_with(struct scratch *scratch, struct names_root *root, struct dirid id, int at,
                                       const char *path, int flags, bool is_misplaced)
{
    int nofollow = flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0;
    int fd = path[0] == '\0' ? at : sys_openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC | nofollow, 0);
    if (fd < 0)
        return fd;
    const int code = root_of_load(root, fd, id, scratch->real, is_misplaced);
    if (fd != at)
        sys_close(fd);
    return code;
}

int directory_load(int fd, struct names_root *root, struct dirid id)
{
    struct scratch *scratch = scratch_take();
    if (scratch == NULL)
        return -ENOMEM;
    int code = root_of_load(root, fd, id, scratch->real, false);
    scratch_give(scratch);
    return code;
}

static int operate_directory_ask_once(struct names_root *root, const struct message *message, struct scratch *scratch)
{
    int code = names_ask(root, message, &scratch->answer);
    return code == 0 ? scratch->answer.message.result : code;
}

/* Sends a message about a directory. One whose place is out of date is told its place and asked again; and so is one that
 * somebody else begins to use, as often as that takes. Not inlined: it is on the stack for one of a root's alone. */
__attribute__((noinline)) static int operate_directory_ask_about(struct names_root *root, struct dirid id, uint16_t type,
                                                                 int at, const char *path, int flags)
{
    struct scratch *scratch = scratch_take();
    struct message message = {.type = type, .dir = id};
    if (scratch == NULL)
        return -ENOMEM;
    int code = operate_directory_ask_once(root, &message, scratch);
    bool is_misplaced = code == -ESTALE || code == -ENOENT, again = is_misplaced || code == MESSAGE_NOT_LOADED;
    for (int i = 0; again && i < TRIES_MAX; i++) {
        code = operate_directory_load_with(scratch, root, id, at, path, flags, is_misplaced);
        again = false;
        if (code == 1) {
            code = operate_directory_ask_once(root, &message, scratch);
            is_misplaced = code == -ESTALE || code == -ENOENT;
            again = is_misplaced || code == MESSAGE_NOT_LOADED;
        }
    }
    scratch_give(scratch);
    return again ? -EIO : code < 0 ? code : 0;
}

/* May names in the directory's mirrors have come and gone since its record was written? What other nodes have changed only they
 * know. */
static bool operate_directory_may_have_changed(const struct names_root *root, const struct record_dir *dir)
{
    if (!(dir->flags & RECORD_MARKED))
        return false;
    const bool is_alone = (dir->flags & RECORD_DELEGATED) || names_is_sole_home(root);
    return !is_alone || (names_has_grants(root) && !BROKEN("settle-unseen"));
}

/* Most directories are spared the question. */
static bool operate_directory_is_needed(const struct names_root *root, const struct record_dir *dir, uint16_t type)
{
    switch (type) {
    case MESSAGE_SETTLE:
        return dir->changed != 0 || dir->settled != 0 || operate_directory_may_have_changed(root, dir);
    case MESSAGE_WATCH:
        return dir->why == RECORD_WHY_NOT;
    default:
        return (dir->flags & RECORD_MARKED) != 0;
    }
}

/* One that is open, or is the working directory, has no place any more, and no mirrors. */
__attribute__((noinline)) static bool operate_directory_is_removed(int at, const char *path, int flags)
{
    struct statx stat;
    return sys_statx(at, path, flags | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_NLINK, &stat) == 0 && S_ISDIR(stat.stx_mode) &&
           stat.stx_nlink == 0;
}

/* 1: the directory is a root's, and was asked about if need be; 0: it is not, or is no more; or -errno. */
static inline int operate_directory_find_and_ask(int at, const char *path, int flags, uint16_t type, struct names_root **root,
                                                 struct dirid *id, struct view_found *found)
{
    int code = root_of_directory(at, path, flags, root, id, found);
    if (code == 1 && operate_directory_is_needed(*root, &found->dir, type)) {
        code = operate_directory_ask_about(*root, *id, type, at, path, flags);
        code = code == 0 ? 1 : code;
    }
    return (code == -ENOENT || code == -ESTALE) && operate_directory_is_removed(at, path, flags) ? 0 : code;
}

/* What is found of the directory is not on the stack of a call on one that is not ours. */
static inline __attribute__((always_inline)) int operate_directory_about(int at, const char *path, int flags, uint16_t type)
{
    struct names_root *root;
    struct dirid id;
    struct scratch *scratch = scratch_take();
    if (scratch == NULL)
        return root_of_directory(at, path, flags, &root, &id, NULL) == 0 ? 0 : -ENOMEM;
    int code = operate_directory_find_and_ask(at, path, flags, type, &root, &id, &scratch->found);
    scratch_give(scratch);
    return code < 0 ? code : 0;
}

static void operate_directory_raise_places(void)
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        names_raise_places(&shim_state.roots[i]);
}

/* 1, 0, or -errno. Not inlined: it is not on the stack of what comes after it. */
__attribute__((noinline)) static int operate_directory_is_directory(int at, const char *path, int flags)
{
    struct statx stat;
    const int code = sys_statx(at, path, flags | AT_STATX_DONT_SYNC, STATX_TYPE, &stat);
    return code != 0 ? code : S_ISDIR(stat.stx_mode);
}

/* One that lets nobody through any more may not show itself either (`directory/.`). */
void directory_follow(int at, const char *path, int flags)
{
    const int saved = errno, code = operate_directory_is_directory(at, path, flags);
    if (code == -EACCES || code == 1)
        operate_directory_raise_places();
    if (code == 1) {
        operate_directory_about(at, path, flags, MESSAGE_ATTRIBUTES);
        operate_directory_raise_places(); /* of a root, too, which this process has not used before */
    }
    errno = saved;
}

void directory_inherits(int fd)
{
    operate_directory_about(fd, "", AT_EMPTY_PATH, MESSAGE_ATTRIBUTES);
}

/* Names are compared, since what the path leads to is elsewhere by now. */
static bool operate_directory_may_be_above(const struct names_root *root, const char *path)
{
    struct path_parts parts;
    path_split(&parts, path);
    return parts.last != PATH_NAME || path_has_component(root->path, parts.name, parts.length);
}

void directory_renamed(const char *from, const char *to)
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        if ((operate_directory_may_be_above(&shim_state.roots[i], from) ||
             operate_directory_may_be_above(&shim_state.roots[i], to)) &&
            names_is_attached(&shim_state.roots[i]))
            names_raise_places(&shim_state.roots[i]);
}

/* May a directory of a root (on that device, 0: on any) have times that its trunk does not show? */
static bool operate_directory_any_redirected(uint64_t device)
{
    for (unsigned i = 0; i < shim_state.process.count; i++) {
        struct names_root *root = &shim_state.roots[i];
        if ((device == 0 || root->device == device) && names_is_attached(root) && names_has_redirected(root))
            return true;
    }
    return false;
}

int directory_settle(int at, const char *path, int flags)
{
    return process_has_roots() && operate_directory_any_redirected(0) ? operate_directory_about(at, path, flags, MESSAGE_SETTLE)
                                                                      : 0;
}

struct away {
    uint64_t hash;
    size_t length;
    char name[RECORD_NAME_MAX + 1];
};

static int operate_directory_first_away(void *context, uint64_t hash, const char *name, size_t length,
                                        const struct record_entry *entry)
{
    struct away *away = context;
    if (entry->branch == 0)
        return 0;
    away->hash = hash;
    away->length = length;
    memcpy(away->name, name, length);
    return 1;
}

static void operate_directory_promote_in(int at, const char *path, const struct away *away, char words[PATH_MAX])
{
    struct target t;
    struct text text;
    text_init(&text, words, PATH_MAX);
    text_add(&text, path);
    text_add(&text, path[0] != '\0' ? "/" : "");
    text_bytes(&text, away->name, away->length);
    if (text_ok(&text) && target_find_text(&t, at, words, TARGET_ALIAS) == TARGET_MANAGED)
        operate_promote(&t);
}

/* The files of a directory that are in a branch go to the trunk, where the kernel reports of them. One that
 * cannot go (a process that may watch a directory may perhaps not change it) stays. */
static void operate_directory_promote_all(struct names_root *root, struct dirid id, int at, const char *path)
{
    struct scratch *scratch = scratch_take();
    struct away away;
    uint64_t from = 0;
    int code;
    if (scratch == NULL)
        return;
    do {
        code = names_list(root, id, &from, 0, operate_directory_first_away, &away);
        if (code == 1) {
            operate_directory_promote_in(at, path, &away, scratch->text[0]);
            from = away.hash + 1;
        }
    } while (code == 1 || (code == 0 && from != 0));
    scratch_give(scratch);
}

int directory_watch(int at, const char *path, int flags)
{
    struct names_root *root;
    struct view_found found;
    struct dirid id;
    int code = operate_directory_find_and_ask(at, path, flags, MESSAGE_WATCH, &root, &id, &found);
    if (code == 1 && (found.dir.flags & RECORD_MARKED))
        operate_directory_promote_all(root, id, at, path);
    return code < 0 ? code : 0;
}

int directory_sync(int fd)
{
    return operate_directory_about(fd, "", AT_EMPTY_PATH, MESSAGE_SYNC);
}

bool directory_is_root(uint64_t device, uint64_t inode)
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        if (shim_state.roots[i].device == device && shim_state.roots[i].id.ino == inode)
            return true;
    return false;
}

/* 1: it has other times than its trunk, 0 or -errno. */
static int operate_directory_find_times(int at, const char *path, int flags, struct names_root **root, struct dirid *id,
                                        struct view_found *found)
{
    int code = root_of_directory(at, path, flags, root, id, found);
    const bool grants = code == 1 && (found->dir.flags & RECORD_MARKED); /* else its files are born in the trunk */
    const int seen = grants ? names_see_grants(*root) : 0;
    if (seen < 0)
        return seen;
    if (seen == 1)
        code = root_of_directory(at, path, flags, root, id, found);
    return code == 1 && found->dir.changed == 0 && found->dir.settled == 0 ? 0 : code;
}

/* The trunk's times that were read before may be those that telling it gives it: they are taken again after that. 1 or -errno.
 * Not inlined: it is rare. */
__attribute__((noinline)) static int operate_directory_await_times(struct scratch *scratch, struct names_root *root,
                                                                   struct dirid id, int at, const char *path, int flags)
{
    int code = names_await_told(root, id, &scratch->found);
    if (code == 0)
        code = sys_statx(at, path, flags, STATX_MTIME | STATX_CTIME, &scratch->end.seen);
    return code == 0 ? 1 : code;
}

int directory_times(int at, const char *path, int flags, uint64_t device, uint64_t *modified, uint64_t *changed)
{
    struct names_root *root = NULL;
    struct scratch *scratch;
    struct dirid id;
    if (!operate_directory_any_redirected(device))
        return 0;
    if ((scratch = scratch_take()) == NULL)
        return -ENOMEM;
    int code = operate_directory_find_times(at, path, flags, &root, &id, &scratch->found);
    if (code == 1 && (scratch->found.dir.flags & RECORD_TELLING) && !BROKEN("telling-unseen") &&
        (code = operate_directory_await_times(scratch, root, id, at, path, flags)) == 1) {
        *modified = clock_stamp(scratch->end.seen.stx_mtime);
        *changed = clock_stamp(scratch->end.seen.stx_ctime);
    }
    if (code == 1)
        record_times(&scratch->found.dir, modified, changed);
    scratch_give(scratch);
    return code;
}
