/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "arguments.h"

#include <linux/openat2.h>
#include <stddef.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "itself.h"
#include "kernel.h"

/* So many of the caller's arguments stand before those for that letter. */
static bool arguments_is_given(char letter)
{
    return letter != '@' && letter != '0' && letter != 'N' && letter != 'R' && letter != 'C';
}

enum {
    ARGUMENTS_UMOUNT_NOFOLLOW = 8,
    ARGUMENTS_MOVE_FOLLOWS = 0x11, /* either path of move_mount */
    ARGUMENTS_PICK_NOFOLLOW = 2,
    ARGUMENTS_QUOTA_ON = 0x800002, /* without the kind of quota */
};

/* Flags of mounts, as those of letter a. */
static unsigned arguments_mount_flags(char letter, unsigned flags)
{
    switch (letter) {
    case 'u':
        return flags & ARGUMENTS_UMOUNT_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
    case 'm':
        return flags & ARGUMENTS_MOVE_FOLLOWS ? AT_SYMLINK_FOLLOW : 0;
    default:
        return flags & ARGUMENTS_PICK_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
    }
}

static unsigned arguments_flags(const struct calls_entry *call, const uint64_t *given)
{
    unsigned at = 0;
    for (const char *letter = call->arguments; *letter != '\0'; at += arguments_is_given(*letter++)) {
        if (*letter == 'a')
            return (unsigned)given[at];
        if (*letter == 'w')
            return given[at] & IN_DONT_FOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
        if (*letter == 'N')
            return AT_SYMLINK_NOFOLLOW;
        if (strchr("umv", *letter) != NULL)
            return arguments_mount_flags(*letter, (unsigned)given[at]);
    }
    return 0;
}

static bool arguments_follows(const struct arguments *a, unsigned open_flags)
{
    if (a->call->kind == CALLS_OPEN || a->call->kind == CALLS_OPEN_HOW)
        return !(open_flags & O_NOFOLLOW) && (open_flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    return a->call->how & CALLS_FOLLOWS ? !(a->flags & AT_SYMLINK_NOFOLLOW) : (a->flags & AT_SYMLINK_FOLLOW) != 0;
}

/* Where a path leads: an error of this kind the kernel will meet, too, or it is told by another way. */
static bool arguments_is_told(int code)
{
    return code == 0 || code == -EFAULT || code == -ENAMETOOLONG || code == -ENOENT || code == -ENOTDIR || code == -EPERM ||
           code == -EACCES;
}

static bool arguments_is_directory(struct arguments *a, int fd)
{
    char name[CALLER_NAME];
    struct statx stat;
    caller_name_descriptor(a->tid, fd, name);
    const int code = sys_statx(AT_FDCWD, name, 0, STATX_TYPE, &stat);
    a->is_unknown |= !arguments_is_told(code);
    return code == 0 && S_ISDIR(stat.stx_mode);
}

/* 0 or -errno. */
static int arguments_text(struct arguments *a, struct arguments_path *path, const char *given)
{
    const int code = where_text(a->tid, path->at, given, path->text);
    a->is_unknown |= !arguments_is_told(code);
    return code;
}

/* What is asked through a descriptor concerns us where a directory of a root is open; the data of files does not. */
static bool arguments_is_our_directory(struct arguments *a, struct arguments_path *path)
{
    path->given[0] = '\0';
    return arguments_text(a, path, "") == 0 && where_is_in_a_root(path->text, false) && arguments_is_directory(a, path->at);
}

/* The times of what is open. */
static bool arguments_may_be_null(const struct calls_entry *call)
{
#ifdef SYS_futimesat
    if (call->as == SYS_futimesat)
        return true;
#endif
    return call->as == SYS_utimensat;
}

/* A link that leads to what the caller has open, or where it is, would lead to ours. */
static bool arguments_spell_out(struct arguments *a, struct arguments_path *path, bool follows)
{
    const int code = itself_may_be_on_the_way(path->text, follows) ? itself_spell_out(a->tid, path->text, follows) : 0;
    a->is_unknown |= code < 0;
    if (code <= 0)
        return false;
    path->is_spelt = true;
    if (strlen(path->text) >= sizeof path->given) {
        a->objection = -ENAMETOOLONG;
        return false;
    }
    strcpy(path->given, path->text);
    return true;
}

/* Does what it is to the caller lead to a root? */
static bool arguments_leads_to_a_root(struct arguments *a, struct arguments_path *path, bool follows)
{
    const bool may = where_is_in_a_root(path->text, follows);
    return may && (!arguments_spell_out(a, path, follows) || where_is_in_a_root(path->text, follows));
}

static bool arguments_look_at(struct arguments *a, struct arguments_path *path, uint64_t from, bool follows)
{
    const bool may_be_empty = a->flags & AT_EMPTY_PATH;
    path->is_there = from != 0;
    if (from == 0 && path->at != AT_FDCWD && arguments_may_be_null(a->call))
        return arguments_is_our_directory(a, path);
    const long length = caller_read_text(a->tid, from, path->given, sizeof path->given);
    const int code = length < 0 ? (int)length : arguments_text(a, path, path->given);
    a->is_unknown |= !arguments_is_told(code);
    if (code != 0) {
        a->is_hidden |= code == -EPERM || code == -EACCES;
        const bool is_empty = length == 0 && !may_be_empty; /* which the kernel says before it looks at the descriptor */
        if (a->objection == 0)
            a->objection = code == -ENOENT && !is_empty ? -EBADF : code; /* a descriptor's name is not there */
        return false;
    }
    if (path->given[0] == '\0')
        return may_be_empty && arguments_is_our_directory(a, path);
    return arguments_leads_to_a_root(a, path, follows);
}

/* With RESOLVE_IN_ROOT the path begins at the descriptor's directory, whatever it looks like. Below a root the library refuses
 * all such flags. */
static void arguments_look_within(struct arguments *a, struct arguments_path *path)
{
    const char *inside = path->given + strspn(path->given, "/");
    path->is_in_root = (arguments_text(a, path, "") == 0 && where_is_in_a_root(path->text, false)) ||
                       (arguments_text(a, path, inside) == 0 && where_is_in_a_root(path->text, false));
    if (path->is_in_root)
        a->objection = -ENOSYS;
}

/* The name of a socket; without an end where it fills the address. */
static bool arguments_look_at_address(struct arguments *a, struct arguments_path *path, uint64_t from, uint64_t size)
{
    struct sockaddr_un address = {0};
    if (size <= offsetof(struct sockaddr_un, sun_path) || size > sizeof address)
        return false;
    const int code = caller_read(a->tid, from, &address, size);
    a->is_unknown |= !arguments_is_told(code);
    if (code != 0 || address.sun_family != AF_UNIX || address.sun_path[0] == '\0')
        return false;
    path->is_there = true;
    memcpy(path->given, address.sun_path, sizeof address.sun_path);
    path->given[sizeof address.sun_path] = '\0';
    if (arguments_text(a, path, path->given) != 0)
        return false;
    path->is_spelt = path->given[0] == '/' && strcmp(path->given, path->text) != 0;
    return arguments_leads_to_a_root(a, path, a->call->how & CALLS_FOLLOWS);
}

/* A mount may have no source, and quotactl something other than a path. */
static bool arguments_has_path(const struct arguments *a, char letter, uint64_t from)
{
    return (a->call->number != SYS_mount || from != 0) && (letter != 'Q' || (unsigned)a->given[0] >> 8 == ARGUMENTS_QUOTA_ON);
}

static bool arguments_look_at_one(struct arguments *a, struct arguments_path *path, char letter, const uint64_t *given, int at,
                                  bool follows)
{
    path->given[0] = '\0';
    path->is_there = path->is_spelt = false;
    path->at = letter == 'f' ? (int)*given : at;
    switch (letter) {
    case 'f':
        return arguments_is_our_directory(a, path);
    case 'k':
        return arguments_look_at_address(a, path, given[0], given[1]);
    default:
        return arguments_has_path(a, letter, *given) && arguments_look_at(a, path, *given, follows);
    }
}

static bool arguments_is_path(char letter)
{
    return letter == 'p' || letter == 'P' || letter == 'Q' || letter == 'f' || letter == 'k';
}

/* Of openat2; zero of any other call, and where it cannot be read. */
static struct open_how arguments_how(struct arguments *a)
{
    struct open_how how;
    if (a->call->kind != CALLS_OPEN_HOW || a->given[3] < sizeof how)
        return (struct open_how){0};
    const int code = caller_read(a->tid, a->given[2], &how, sizeof how);
    a->is_unknown |= !arguments_is_told(code);
    return code == 0 ? how : (struct open_how){0};
}

static unsigned arguments_open_flags(const struct calls_entry *call, const uint64_t *given, const struct open_how *how)
{
    if (call->kind == CALLS_OPEN_HOW)
        return (unsigned)how->flags | (how->resolve & RESOLVE_NO_SYMLINKS ? O_NOFOLLOW : 0);
    if (call->kind != CALLS_OPEN)
        return 0;
    return call->arguments[2] == 'C' ? O_CREAT | O_TRUNC : (unsigned)given[call->arguments[0] == 'd' ? 2 : 1];
}

/* A call with one path in a root is done here, with the other as well. */
static void arguments_spell_out_others(struct arguments *a, bool follows)
{
    for (unsigned i = 0; i < a->count; i++)
        if (a->paths[i].is_there && a->paths[i].given[0] == '/' && !a->paths[i].is_in_root && !a->paths[i].is_spelt)
            arguments_spell_out(a, &a->paths[i], follows);
}

int arguments_look(struct arguments *a, const struct calls_entry *call, const uint64_t given[CALLS_ARGUMENTS], pid_t tid)
{
    unsigned at = 0, made = 0;
    int found = 0, directory = AT_FDCWD;
    a->call = call;
    a->given = given;
    a->tid = tid;
    a->count = 0;
    a->objection = 0;
    a->is_hidden = a->is_unknown = false;
    a->other = a->opened[0] = a->opened[1] = -1;
    a->back_size = 0;
    a->flags = arguments_flags(call, given);
    const struct open_how how = arguments_how(a);
    const bool follows = arguments_follows(a, arguments_open_flags(call, given, &how));
    for (const char *letter = call->arguments; *letter != '\0'; made++, letter++) {
        if (strchr("d@PQ", *letter) != NULL)
            directory = *letter == 'd' ? (int)given[at] : AT_FDCWD;
        if (arguments_is_path(*letter)) {
            struct arguments_path *path = &a->paths[a->count++];
            path->where = made;
            path->is_in_root = arguments_look_at_one(a, path, *letter, &given[at], directory, follows);
            if (how.resolve & RESOLVE_IN_ROOT)
                arguments_look_within(a, path);
            found |= path->is_in_root;
        }
        at += arguments_is_given(*letter);
    }
    if (found && a->count > 1)
        arguments_spell_out_others(a, follows);
    return found;
}

/* Our descriptor of a directory of the caller's. The position of a listing is shared, as it is with a dup. */
static int arguments_open(struct arguments *a, const struct arguments_path *path, bool itself)
{
    char name[CALLER_NAME];
    int *opened = &a->opened[path - a->paths];
    caller_name_descriptor(a->tid, path->at, name);
    *opened =
        itself && path->at != AT_FDCWD ? caller_take(a->tid, path->at) : sys_openat(AT_FDCWD, name, O_PATH | O_CLOEXEC, 0);
    return *opened;
}

/* A call that takes no directory is done from within it. */
static int arguments_make_path(struct arguments *a, char letter, const struct arguments_path *path, long *directory, long *to)
{
    const bool is_absolute = path->given[0] == '/', is_empty = path->given[0] == '\0' || !path->is_there;
    if (letter == 'f')
        return (int)(*to = arguments_open(a, path, true)) < 0 ? (int)*to : 0;
    if (letter == 'P' || letter == 'Q' || letter == 'k') {
        *to = letter == 'k' ? (long)a->in : is_absolute ? (long)path->text : (long)path->given;
        const int at = is_absolute ? 0 : arguments_open(a, path, false);
        if (letter == 'k')
            caller_read(a->tid, a->given[path->where], a->in, a->given[path->where + 1]);
        return at > 0 ? (int)SYS1(SYS_fchdir, at) : at;
    }
    *to = !path->is_there ? 0 : is_absolute ? (long)path->text : (long)path->given;
    *directory = is_absolute ? AT_FDCWD : arguments_open(a, path, is_empty);
    return is_absolute || *directory >= 0 ? 0 : (int)*directory;
}

static int arguments_make_in(struct arguments *a, uint64_t from, size_t size, long *to)
{
    *to = from == 0 ? 0 : (long)a->in;
    return size > ARGUMENTS_BYTES ? -E2BIG : from == 0 ? 0 : caller_read(a->tid, from, a->in, size);
}

static int arguments_make_text(struct arguments *a, uint64_t from, long *to)
{
    const bool is_target = a->call->as == SYS_symlinkat; /* which may be as long as a path */
    char *text = is_target ? a->in : a->text;
    const long length = caller_read_text(a->tid, from, text, is_target ? PATH_MAX : sizeof a->text);
    *to = (long)text;
    return length == -ENAMETOOLONG && !is_target ? -ERANGE : length < 0 ? (int)length : 0;
}

/* What comes back. Where there may be more than there is room for here, less is asked for (a listing comes in pieces; nothing
 * else is as long). */
static void arguments_make_out(struct arguments *a, uint64_t to, size_t size, bool by_result, long *made)
{
    a->back = to;
    a->back_size = size < ARGUMENTS_BYTES ? size : ARGUMENTS_BYTES;
    a->back_by_result = by_result;
    *made = (long)a->out;
}

static int arguments_make_one(struct arguments *a, const char *letter, unsigned made, unsigned at, unsigned path)
{
    long *to = &a->made[made];
    switch (*letter) {
    case '@':
    case 'd':
        return 0; /* comes with its path */
    case 'p':
    case 'P':
    case 'Q':
    case 'f':
    case 'k':
        return arguments_make_path(a, *letter, &a->paths[path], made > 0 ? to - 1 : to, to);
    case 'F':
        a->other = caller_take(a->tid, (int)a->given[at]);
        *to = a->other;
        return a->other < 0 ? a->other : 0;
    case 's':
        return arguments_make_text(a, a->given[at], to);
    case 't':
        return arguments_make_in(a, a->given[at], a->call->in, to);
    case 'b':
        return arguments_make_in(a, a->given[at], a->given[at + 1], to);
    case 'O':
        if (a->call->as == SYS_readlinkat && (int)a->given[at + 1] <= 0)
            return -EINVAL;
        __attribute__((fallthrough));
    case 'o':
        arguments_make_out(a, a->given[at], *letter == 'o' ? a->call->out : a->given[at + 1], *letter == 'O', to);
        return 0;
    default:
        *to = *letter == '0'   ? 0
              : *letter == 'N' ? AT_SYMLINK_NOFOLLOW
              : *letter == 'R' ? AT_REMOVEDIR
              : *letter == 'C' ? O_CREAT | O_WRONLY | O_TRUNC
                               : (long)a->given[at];
        if (made > 0 && letter[-1] == 'O')
            *to = (long)a->back_size;
        return 0;
    }
}

int arguments_make(struct arguments *a)
{
    unsigned at = 0, made = 0, path = 0;
    int code = a->objection;
    memset(a->made, 0, sizeof a->made);
    for (const char *letter = a->call->arguments; *letter != '\0' && code == 0; letter++, made++) {
        code = arguments_make_one(a, letter, made, at, path);
        path += arguments_is_path(*letter);
        at += arguments_is_given(*letter);
    }
    return code;
}

long arguments_back(struct arguments *a, long result)
{
    if (result < 0 || a->back_size == 0)
        return result;
    const size_t size = !a->back_by_result ? a->back_size : (size_t)result < a->back_size ? (size_t)result : a->back_size;
    const int code = caller_write(a->tid, a->back, a->out, size);
    return code == 0 ? result : code;
}

static void arguments_close(int *fd)
{
    if (*fd >= 0)
        sys_close(*fd);
    *fd = -1;
}

void arguments_release(struct arguments *a)
{
    if (a->opened[0] >= 0 && strpbrk(a->call->arguments, "Pk") != NULL)
        SYS1(SYS_chdir, "/");
    for (unsigned i = 0; i < ARGUMENTS_PATHS; i++)
        arguments_close(&a->opened[i]);
    arguments_close(&a->other);
}
