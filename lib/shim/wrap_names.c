/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What makes, removes, moves and reads names. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "shim/side.h"
#include "shim/wrap.h"
#include "shim/visible_path.h"

#define MAKES (TARGET_MAKES | TARGET_ASKS) /* or removes, by asking the home of the name */

/* remove is unlink, and rmdir if that said EISDIR; the last two follow no link at the end. */
WRAPPER int unlink(const char *path)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, MAKES, REAL(unlink)(path), operate_unlink(t));
}

/* `.` and `..` the kernel refuses to remove before it asks what they are. */
static bool wrap_names_ends_in_dots(const char *path)
{
    struct path_parts parts;
    if (process_check_path(path) != 0)
        return false;
    path_split(&parts, path);
    return parts.last == PATH_DOTS;
}

/* A root is like a mount point: it can be emptied, not removed or renamed. */
static int wrap_names_remove_directory(int at, const char *path, int (*original)(int, const char *))
{
    struct target *t = NULL;
    struct scratch *seen = NULL;
    int how = TARGET_FIND(t, seen, at, path, TARGET_MAKES);
    if (how == TARGET_MANAGED)
        return (int)wrap_answer(operate_rmdir(t));
    if (how == TARGET_ROOT && !wrap_names_ends_in_dots(path))
        how = -EBUSY;
    return how < 0 ? (int)wrap_answer(how) : original(at, path);
}

static int wrap_names_original_rmdir(int at, const char *path)
{
    return REAL(rmdir)(path);
}

static int wrap_names_original_unlinkat(int at, const char *path)
{
    return REAL(unlinkat)(at, path, AT_REMOVEDIR);
}

WRAPPER int rmdir(const char *path)
{
    WRAPPER_LAUNDER(path);
    return wrap_names_remove_directory(AT_FDCWD, path, wrap_names_original_rmdir);
}

WRAPPER int unlinkat(int at, const char *path, int flags)
{
    WRAPPER_LAUNDER(path);
    if (flags == AT_REMOVEDIR)
        return wrap_names_remove_directory(at, path, wrap_names_original_unlinkat);
    if (flags != 0) {
        process_has_roots();
        return REAL(unlinkat)(at, path, flags);
    }
    return (int)WRAPPER_PATH(at, path, MAKES, REAL(unlinkat)(at, path, flags), operate_unlink(t));
}

WRAPPER int remove(const char *path)
{
    WRAPPER_LAUNDER(path);
    struct target *t = NULL;
    struct scratch *seen = NULL;
    int saved = errno;
    int how = TARGET_FIND(t, seen, AT_FDCWD, path, MAKES);
    if (how != TARGET_MANAGED && how != TARGET_ROOT)
        return how < 0 ? (int)wrap_answer(how) : REAL(remove)(path);
    if (how == TARGET_MANAGED)
        target_done(t);
    if (unlink(path) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    errno = saved;
    return rmdir(path);
}

/* What was found of one side: -errno, or enum target_how. */
static int wrap_names_found(struct side *side, int how)
{
    side->is_managed = how == TARGET_MANAGED;
    return how;
}

static void wrap_names_drop(struct side *side)
{
    if (side->is_managed)
        target_done(&side->target);
}

/* How a call about two paths goes on: TARGET_FOREIGN, both are foreign; TARGET_MANAGED, at least one is ours; or
 * -errno. */
static int wrap_names_find_sides(const struct target_pair *pair, struct side *from, int from_at, const char *from_path,
                                 unsigned want, struct side *to, int to_at, const char *to_path, unsigned to_want)
{
    *from = (struct side){.at = from_at, .path = from_path};
    *to = (struct side){.at = to_at, .path = to_path};
    int one = wrap_names_found(from, target_find_first(&from->target, pair, from_at, from_path, want));
    int two = wrap_names_found(to, target_find_second(&to->target, pair, &from->target, to_at, to_path, to_want));
    if (one >= 0 && two >= 0)
        return from->is_managed || to->is_managed         ? TARGET_MANAGED
               : one == TARGET_ROOT || two == TARGET_ROOT ? TARGET_ROOT
                                                          : TARGET_FOREIGN;
    wrap_names_drop(from);
    wrap_names_drop(to);
    return one < 0 ? one : two;
}

/* The parent of the first path is looked for before that of the second. */
static int wrap_names_first_error(int from_at, const char *from, int error)
{
    struct side side = {.at = from_at, .path = from};
    int code = wrap_names_found(&side, target_find(&side.target, from_at, from, TARGET_MAKES));
    wrap_names_drop(&side);
    if (code < 0 || code == TARGET_MANAGED)
        return code < 0 ? code : error;
    code = side_parent_outside(&side);
    return code == 0 ? error : code;
}

__attribute__((noinline)) static int wrap_names_rename_sides(int from_at, const char *from, int to_at, const char *to,
                                                             unsigned flags, const struct target_pair *pair, int *how)
{
    struct side one, two;
    *how = wrap_names_find_sides(pair, &one, from_at, from, TARGET_MAKES, &two, to_at, to, MAKES);
    if (*how == TARGET_MANAGED)
        return (int)wrap_answer(operate_rename(&one, &two, flags));
    if (*how == TARGET_ROOT && (wrap_names_ends_in_dots(from) || wrap_names_ends_in_dots(to)))
        *how = TARGET_FOREIGN; /* the kernel says EBUSY itself */
    if (*how == TARGET_ROOT)
        return (int)wrap_answer(-EBUSY);
    if (*how == -ENOTDIR || *how == -ELOOP || *how == -ENOENT)
        return (int)wrap_answer(wrap_names_first_error(from_at, from, *how));
    return *how < 0 ? (int)wrap_answer(*how) : 0;
}

static int wrap_names_rename_words(int from_at, const char *from, int to_at, const char *to, unsigned flags, int *how)
{
    const unsigned known = RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT;
    *how = TARGET_FOREIGN;
    if ((flags & ~known) || ((flags & RENAME_EXCHANGE) && flags != RENAME_EXCHANGE)) /* the kernel says so */
        return 0;
    struct target_pair pair;
    if (target_are_foreign(&pair, from_at, from, TARGET_MAKES, to_at, to))
        return 0;
    return wrap_names_rename_sides(from_at, from, to_at, to, flags, &pair, how);
}

static int wrap_names_outside(int code, const char *from, const char *to)
{
    int saved = errno;
    if (code == 0 && shim_state.process.count > 0)
        directory_renamed(from, to);
    errno = saved;
    return code;
}

WRAPPER int rename(const char *from, const char *to)
{
    int how;
    WRAPPER_LAUNDER(from);
    WRAPPER_LAUNDER(to);
    int code = wrap_names_rename_words(AT_FDCWD, from, AT_FDCWD, to, 0, &how);
    return how == TARGET_FOREIGN ? wrap_names_outside(REAL(rename)(from, to), from, to) : code;
}

WRAPPER int renameat(int from_at, const char *from, int to_at, const char *to)
{
    int how;
    WRAPPER_LAUNDER(from);
    WRAPPER_LAUNDER(to);
    int code = wrap_names_rename_words(from_at, from, to_at, to, 0, &how);
    return how == TARGET_FOREIGN ? wrap_names_outside(REAL(renameat)(from_at, from, to_at, to), from, to) : code;
}

WRAPPER int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    int how;
    WRAPPER_LAUNDER(from);
    WRAPPER_LAUNDER(to);
    int code = wrap_names_rename_words(from_at, from, to_at, to, flags, &how);
    return how == TARGET_FOREIGN ? wrap_names_outside(REAL(renameat2)(from_at, from, to_at, to, flags), from, to) : code;
}

__attribute__((noinline)) static int wrap_names_link_sides(int from_at, const char *from, unsigned want, int to_at,
                                                           const char *to, int flags, const struct target_pair *pair, int *how)
{
    struct stat stat;
    struct side one, two;
    *how = wrap_names_find_sides(pair, &one, from_at, from, want, &two, to_at, to, TARGET_MAKES);
    if (*how == TARGET_MANAGED)
        return (int)wrap_answer(operate_link(&one, &two, flags));
    if ((*how == -ENOTDIR || *how == -ELOOP || *how == -ENOENT) &&
        fstatat(from_at, from, &stat, (flags & AT_EMPTY_PATH) | (flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW)) != 0)
        return -1; /* the first path's error goes first */
    if (*how == TARGET_ROOT)
        *how = TARGET_FOREIGN; /* a directory: the kernel says EPERM, or EEXIST */
    return *how < 0 ? (int)wrap_answer(*how) : 0;
}

static int wrap_names_link_words(int from_at, const char *from, int to_at, const char *to, int flags, int *how)
{
    const unsigned want = flags & AT_SYMLINK_FOLLOW ? TARGET_FOLLOW | TARGET_ALIAS : TARGET_ALIAS;
    *how = TARGET_FOREIGN;
    if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) /* the kernel says so */
        return 0;
    struct target_pair pair;
    if (target_are_foreign(&pair, from_at, from, want, to_at, to))
        return 0;
    return wrap_names_link_sides(from_at, from, want, to_at, to, flags, &pair, how);
}

WRAPPER int link(const char *from, const char *to)
{
    int how;
    WRAPPER_LAUNDER(from);
    WRAPPER_LAUNDER(to);
    int code = wrap_names_link_words(AT_FDCWD, from, AT_FDCWD, to, 0, &how);
    return how == TARGET_FOREIGN ? REAL(link)(from, to) : code;
}

WRAPPER int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
    int how;
    WRAPPER_LAUNDER(from);
    WRAPPER_LAUNDER(to);
    int code = wrap_names_link_words(from_at, from, to_at, to, flags, &how);
    return how == TARGET_FOREIGN ? REAL(linkat)(from_at, from, to_at, to, flags) : code;
}

WRAPPER int symlink(const char *text, const char *path)
{
    WRAPPER_LAUNDER(text);
    WRAPPER_LAUNDER(path);
    if (process_has_roots() && (process_check_path(text) != 0 || *text == '\0'))
        return REAL(symlink)(text, path); /* the kernel looks at the text first */
    return (int)WRAPPER_PATH(AT_FDCWD, path, MAKES, REAL(symlink)(text, path), operate_make(t, S_IFLNK, 0, text));
}

WRAPPER int symlinkat(const char *text, int at, const char *path)
{
    WRAPPER_LAUNDER(text);
    WRAPPER_LAUNDER(path);
    if (process_has_roots() && (process_check_path(text) != 0 || *text == '\0'))
        return REAL(symlinkat)(text, at, path);
    return (int)WRAPPER_PATH(at, path, MAKES, REAL(symlinkat)(text, at, path), operate_make(t, S_IFLNK, 0, text));
}

static long wrap_names_read_there(struct target *to, char *buffer, size_t size)
{
    long code = TARGET_CALL(to, sys_readlinkat(to->real_at, to->real_path, buffer, size));
    target_done(to);
    return code;
}

WRAPPER ssize_t readlink(const char *restrict path, char *restrict buffer, size_t size)
{
    WRAPPER_LAUNDER(path);
    ssize_t length =
        WRAPPER_PATH(AT_FDCWD, path, 0, REAL(readlink)(path, buffer, size), wrap_names_read_there(t, buffer, size));
    return visible_path_link(AT_FDCWD, path, buffer, size, length);
}

WRAPPER ssize_t readlinkat(int at, const char *restrict path, char *restrict buffer, size_t size)
{
    WRAPPER_LAUNDER(path);
    ssize_t length =
        WRAPPER_PATH(at, path, 0, REAL(readlinkat)(at, path, buffer, size), wrap_names_read_there(t, buffer, size));
    return visible_path_link(at, path, buffer, size, length);
}

/* The real ones abort if the buffer is smaller than said. */
ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t room);
WRAPPER ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t room)
{
    process_has_roots();
    return size > room ? REAL(__readlink_chk)(path, buffer, size, room) : readlink(path, buffer, size);
}

ssize_t __readlinkat_chk(int at, const char *path, char *buffer, size_t size, size_t room);
WRAPPER ssize_t __readlinkat_chk(int at, const char *path, char *buffer, size_t size, size_t room)
{
    process_has_roots();
    return size > room ? REAL(__readlinkat_chk)(at, path, buffer, size, room) : readlinkat(at, path, buffer, size);
}

WRAPPER int mkdir(const char *path, mode_t mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, MAKES, REAL(mkdir)(path, mode),
                             operate_make(t, S_IFDIR | (mode & 07777), 0, NULL));
}

WRAPPER int mkdirat(int at, const char *path, mode_t mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(at, path, MAKES, REAL(mkdirat)(at, path, mode),
                             operate_make(t, S_IFDIR | (mode & 07777), 0, NULL));
}

/* A type of 0 is a regular file; what mknod does not make, the kernel says, before it looks at the path. */
static bool wrap_names_is_made_by_mknod(mode_t mode)
{
    const mode_t type = mode & S_IFMT;
    return type == 0 || type == S_IFREG || type == S_IFIFO || type == S_IFSOCK || type == S_IFCHR || type == S_IFBLK;
}

#define MKNOD(MODE) (wrap_names_is_made_by_mknod(MODE) ? MAKES : 0)

static long wrap_names_make_node(struct target *t, mode_t mode, dev_t device)
{
    if (wrap_names_is_made_by_mknod(mode))
        return operate_make(t, mode & S_IFMT ? mode : mode | S_IFREG, device, NULL);
    long code = SYS4(SYS_mknodat, t->at, t->path, mode, device);
    target_done(t);
    return code;
}

WRAPPER int mknod(const char *path, mode_t mode, dev_t device)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, MKNOD(mode), REAL(mknod)(path, mode, device),
                             wrap_names_make_node(t, mode, device));
}

WRAPPER int mknodat(int at, const char *path, mode_t mode, dev_t device)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(at, path, MKNOD(mode), REAL(mknodat)(at, path, mode, device),
                             wrap_names_make_node(t, mode, device));
}

/* libc's mkfifo is mknod, with what the mode says of a type besides. */
WRAPPER int mkfifo(const char *path, mode_t mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(AT_FDCWD, path, MKNOD(mode | S_IFIFO), REAL(mkfifo)(path, mode),
                             wrap_names_make_node(t, mode | S_IFIFO, 0));
}

WRAPPER int mkfifoat(int at, const char *path, mode_t mode)
{
    WRAPPER_LAUNDER(path);
    return (int)WRAPPER_PATH(at, path, MKNOD(mode | S_IFIFO), REAL(mkfifoat)(at, path, mode),
                             wrap_names_make_node(t, mode | S_IFIFO, 0));
}

int __xmknod(int version, const char *path, mode_t mode, dev_t *device);
WRAPPER int __xmknod(int version, const char *path, mode_t mode, dev_t *device)
{
    return (int)WRAPPER_PATH(AT_FDCWD, path, MKNOD(mode), REAL(__xmknod)(version, path, mode, device),
                             wrap_names_make_node(t, mode, *device));
}

int __xmknodat(int version, int at, const char *path, mode_t mode, dev_t *device);
WRAPPER int __xmknodat(int version, int at, const char *path, mode_t mode, dev_t *device)
{
    return (int)WRAPPER_PATH(at, path, MKNOD(mode), REAL(__xmknodat)(version, at, path, mode, device),
                             wrap_names_make_node(t, mode, *device));
}
