/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/root_of.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/helper_process.h"
#include "base/hook.h"
#include "base/sys.h"
#include "shim/beside.h"
#include "shim/prefilter.h"
#include "shim/process.h"
#include "union/identity.h"

#define FIND_AGAIN 2
#define FIND_PLAIN 3 /* it is beneath a root that was exported: plain, until a session begins there */
#define TRIES_MAX 1000
#define PLACES_MAX 10 /* that it is told at: an NFS client may believe for long that a directory is where it was */
#define IDENTITY (IDENTITY_MASK | STATX_MODE | STATX_MNT_ID)

int root_of_stat(const struct names_root *root, int at, const char *path, struct statx *stat)
{
    return identity_stat(root->id, at, path, AT_SYMLINK_NOFOLLOW, stat);
}

/* More than its number, in one of the roots on that device. Zero: no root there has more. */
static struct dirid root_of_identified_on(uint64_t device)
{
    for (unsigned i = 0; i < shim_state.process.count; i++)
        if (shim_state.roots[i].device == device && shim_state.roots[i].id.birth != 0)
            return shim_state.roots[i].id;
    return (struct dirid){0};
}

/* The identity of an inode never changes, and the kernel knows it from having found it. To have it ask the file system again
 * would be one more message for each call on those that keep attributes elsewhere (FUSE, NFS). But a time of birth it
 * may not have been told yet. */
int root_of_identify(int at, const char *path, int flags, struct statx *stat)
{
    int code = sys_statx(at, path, flags | AT_STATX_DONT_SYNC, IDENTITY, stat);
    if (code != 0 || (stat->stx_mask & STATX_BTIME))
        return code;
    const struct dirid root = root_of_identified_on(names_device(stat));
    if (dirid_is_by_handle(root))
        identity_add_handle(at, path, flags, stat);
    else if (root.birth != 0)
        code = sys_statx(at, path, flags, IDENTITY, stat);
    return code;
}

static bool root_of_is_elsewhere(int code)
{
    return code == -ESTALE || code == -ENOENT || code == -ENOTDIR;
}

/* One that has gone has no place; nor has the one that was meant if another is at its path now. */
static bool root_of_has_place(int fd, struct dirid id)
{
    struct statx stat, links;
    return sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_NLINK, &links) == 0 && links.stx_nlink > 0 &&
           root_of_identify(fd, "", AT_EMPTY_PATH, &stat) == 0 && dirid_equal(dirid_of(&stat), id);
}

/* What is told of the first place counts: of one that has gone meanwhile the kernel tells a place that is none. One that is
 * where it was told to be, and was not found there, was at another place at that moment, and has been renamed back. */
int root_of_load(struct names_root *root, int fd, struct dirid id, char *text, bool is_misplaced)
{
    const char *relative;
    uint64_t told = 0;
    int first = 0, is_beneath = 0;
    for (int i = 0; i < PLACES_MAX && (is_beneath = names_place_of(root, fd, text, &relative)) == 1; i++) {
        const uint64_t place = record_hash(relative, strlen(relative));
        if (place == told && !root_of_has_place(fd, id))
            return first;
        told = place;
        const int code = is_misplaced ? names_load_misplaced(root, id, relative) : names_load(root, id, relative);
        if (!root_of_is_elsewhere(code))
            return code == 0 ? 1 : code;
        first = first != 0 ? first : code;
    }
    return first != 0 ? first : is_beneath;
}

/* Loads a directory that the index does not know, if it lies under the root. 1, 0: it does not, or -errno. */
static int root_of_load_if_beneath(struct names_root *root, int fd, struct dirid id, char *text)
{
    const char *relative;
    const int code = names_place_of(root, fd, text, &relative);
    return code != 1 ? code : names_is_plain(root) ? FIND_PLAIN : root_of_load(root, fd, id, text, false);
}

/* By the text alone. */
static int root_of_refuse_by_text(struct scratch *s, int at, const char *path)
{
    if (path[0] != '/' && (at == AT_FDCWD ? !process_working_directory(s->real) : names_read_place(at, s->real) != 0))
        return 0;
    struct names_root *root = prefilter_root(s->real, path);
    return root != NULL ? names_refuse(root) : 0;
}

/* By where it is. */
static int root_of_refuse_open(struct scratch *s, int fd, int at, const char *path)
{
    if (names_read_place(fd, s->real) != 0)
        return root_of_refuse_by_text(s, at, path);
    struct names_root *root = prefilter_root(NULL, s->real);
    return root != NULL ? names_refuse(root) : 0;
}

/* EACCES is what the kernel says of directories that may not be searched, too: then it says so again. */
int root_of_unseen(struct scratch *s, int at, const char *path, int code)
{
    if (!sys_may_be_refused(code))
        return sys_is_about_path(code) ? 0 : code;
    if (path[0] == '\0' && at >= 0)
        return root_of_refuse_open(s, at, at, path);
    const int fd = sys_openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return code != -EACCES ? root_of_refuse_by_text(s, at, path) : 0;
    code = root_of_refuse_open(s, fd, at, path);
    sys_close(fd);
    return code;
}

struct seeking {
    struct scratch *scratch;
    int at;
    const char *path;
    uint64_t device;
    struct dirid id;
    struct names_root **to;
};

static int root_of_seek(void *context)
{
    const struct seeking *s = context;
    int fd = s->path[0] == '\0' && s->at >= 0 ? s->at : sys_openat(s->at, s->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (sys_may_be_refused(fd)) /* what was just seen */
        return root_of_refuse_by_text(s->scratch, s->at, s->path);
    if (fd == -EMFILE || fd == -ENFILE)
        return -EMFILE;
    if (fd < 0) /* it vanished, or was no directory: the native call says so */
        return sys_is_about_path(fd) ? 0 : fd;
    int code = 0;
    HOOK("place-sought");
    for (unsigned i = 0; i < shim_state.process.count && code == 0; i++)
        if (shim_state.roots[i].device == s->device) {
            code = root_of_load_if_beneath(&shim_state.roots[i], fd, s->id, s->scratch->real);
            *s->to = &shim_state.roots[i];
        }
    if (fd != s->at)
        sys_close(fd);
    return code;
}

int root_of_place(struct scratch *scratch, int at, const char *path, uint64_t device, struct dirid id, struct names_root **to)
{
    struct seeking seeking = {scratch, at, path, device, id, to};
    int code = root_of_seek(&seeking);
    if (code != -EMFILE)
        return code;
    uint64_t before = sys_block_signals();
    code = helper_run(root_of_seek, &seeking, at);
    sys_set_signals(before);
    return code;
}

/* Is the index of an attached root aware of that directory? 1, 0, or -errno. A root that cannot be attached
 * is passed over here: whether the directory is beneath it is seen from its place. */
static int root_of_find_by_identity(uint64_t device, struct dirid id, const char *name, size_t length, struct names_root **to,
                                    struct view_found *found)
{
    for (unsigned i = 0; i < shim_state.process.count; i++) {
        struct names_root *root = &shim_state.roots[i];
        if (root->device != device || !names_is_attached(root))
            continue;
        int code = names_find(root, id, name, length, found);
        if (code != 0)
            return code;
        if (root_of_is_loaded(found)) {
            *to = root;
            return 1;
        }
    }
    return 0;
}

/* Which root holds the directory (at, path), whose identity is known; its record and the name's are looked
 * up. 1, 0, FIND_AGAIN or -errno. */
static int root_of_find_root_once(struct scratch *scratch, int at, const char *path, uint64_t device, struct dirid id,
                                  const char *name, size_t length, struct names_root **root, struct view_found *found)
{
    if (!beside_is_on_a_root_device(device))
        return 0;
    int code = root_of_find_by_identity(device, id, name, length, root, found);
    if (code != 0)
        return code;
    code = root_of_place(scratch, at, path, device, id, root);
    if (code == FIND_PLAIN)
        return 0;
    if (code == -ENAMETOOLONG) /* too deep to be served; not for ever, if one above is renamed */
        return 0;
    if (code != 1)
        return code;
    code = names_find(*root, id, name, length, found);
    return code != 0 ? code : root_of_is_loaded(found) ? 1 : FIND_AGAIN;
}

/* The daemon that loaded it may have been followed by another one. */
int root_of(struct scratch *scratch, int at, const char *path, uint64_t device, struct dirid id, const char *name,
            size_t length, struct names_root **root, struct view_found *found)
{
    int code = FIND_AGAIN;
    for (int i = 0; code == FIND_AGAIN && i < TRIES_MAX; i++)
        code = root_of_find_root_once(scratch, at, path, device, id, name, length, root, found);
    return code == FIND_AGAIN ? -EIO : code;
}

/* One that is where a root should be, which is hidden: -EIO, else 0. */
static int root_of_in_place_of_hidden(struct scratch *scratch, int at, const char *path)
{
    int code = 0;
    int fd = path[0] == '\0' && at >= 0 ? at : sys_openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    if (names_read_place(fd, scratch->text[0]) == 0)
        code = prefilter_hidden(scratch, AT_FDCWD, scratch->text[0]);
    if (fd != at)
        sys_close(fd);
    return code;
}

int root_of_see(struct scratch *s, int at, const char *path, int flags)
{
    const struct statx *stat = &s->end.seen;
    const int code = root_of_identify(at, path, flags, &s->end.seen);
    if (code == 0)
        s->seen = (struct scratch_seen){.dir = dirid_of(stat),
                                        .device = names_device(stat),
                                        .mount = mount_of(stat),
                                        .sticky = (stat->stx_mode & S_ISVTX) && (stat->stx_mode & (S_IWGRP | S_IWOTH)),
                                        .pin = -1};
    return code;
}

/* Not inlined: it is not on the stack of what comes before it. */
__attribute__((noinline)) static int root_of_search(struct scratch *scratch, int at, const char *path, struct names_root **root,
                                                    struct view_found *found)
{
    const struct scratch_seen seen = scratch->seen;
    int code =
        beside_is_on_a_root_device(seen.device) ? root_of(scratch, at, path, seen.device, seen.dir, NULL, 0, root, found) : 0;
    return code == 0 && prefilter_some_is_hidden() ? root_of_in_place_of_hidden(scratch, at, path) : code;
}

static int root_of_directory_with(struct scratch *scratch, int at, const char *path, int flags, struct names_root **root,
                                  struct dirid *id, struct view_found *found)
{
    const int nofollow = flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0;
    const int code = root_of_see(scratch, at, path, flags);
    if (code != 0)
        return root_of_unseen(scratch, at, path, code);
    if ((scratch->end.seen.stx_mode & S_IFMT) != S_IFDIR)
        return 0;
    *id = scratch->seen.dir;
    if (beside_is_directory(scratch, at, path, nofollow))
        return 0;
    return root_of_search(scratch, at, path, root, found != NULL ? found : &scratch->found);
}

/* Nor is this one. */
__attribute__((noinline)) static int root_of_without_room(int at, const char *path, int flags)
{
    struct statx stat;
    return root_of_identify(at, path, flags, &stat) == 0 && (stat.stx_mode & S_IFMT) == S_IFDIR &&
                   (prefilter_some_is_hidden() || beside_is_on_a_root_device(names_device(&stat)))
               ? -ENOMEM
               : 0;
}

int root_of_directory(int at, const char *path, int flags, struct names_root **root, struct dirid *id, struct view_found *found)
{
    if (!process_has_roots())
        return 0;
    struct scratch *scratch = scratch_take();
    if (scratch == NULL)
        return root_of_without_room(at, path, flags);
    const int code = root_of_directory_with(scratch, at, path, flags, root, id, found);
    scratch_give(scratch);
    return code;
}
