/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* open, and the making of other things: a name is reserved, made, confirmed. */

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/hook.h"
#include "base/sys.h"
#include "shim/create.h"
#include "shim/remote.h"
#include "shim/claim.h"
#include "shim/operations.h"
#include "shim/root_of.h"

/* Is what is known of the name true? 0, -ENOENT, or another -errno. */
static int operate_open_there(struct target *t)
{
    struct statx stat;
    return (int)TARGET_CALL(t, sys_statx(t->real_at, target_without_slash(t), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat));
}

/* A number in /proc/sys/fs; 0 where there is none. */
static int operate_open_protection(const char *path)
{
    char digit = '0';
    int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0) {
        sys_read(fd, &digit, 1);
        sys_close(fd);
    }
    return digit - '0';
}

/* fs.protected_regular and fs.protected_fifos, as may_create_in_sticky (fs/namei.c of Linux 6.12) goes by them: in a sticky
 * directory O_CREAT opens no file of somebody else's. The call is made without O_CREAT, and the kernel does not say so. */
static int operate_open_may_in_sticky(struct target *t)
{
    struct statx file, directory;
    char *text = t->scratch->text[0];
    if (path_parent_text(t->path, t->parent_length, text) != 0 ||
        sys_statx(t->at, text, 0, STATX_MODE | STATX_UID, &directory) != 0 ||
        TARGET_CALL(t, sys_statx(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_UID, &file)) != 0 ||
        (!S_ISREG(file.stx_mode) && !S_ISFIFO(file.stx_mode)) || !(directory.stx_mode & S_ISVTX) ||
        file.stx_uid == directory.stx_uid || file.stx_uid == (uint32_t)SYS1(SYS_setfsuid, -1))
        return 0;
    const int level =
        operate_open_protection(S_ISFIFO(file.stx_mode) ? "/proc/sys/fs/protected_fifos" : "/proc/sys/fs/protected_regular");
    return (level >= 1 && (directory.stx_mode & S_IWOTH)) || (level >= 2 && (directory.stx_mode & S_IWGRP)) ? -EACCES : 0;
}

/* A program without the shim may have put a directory in the place of a file. The call is made without O_CREAT, with which the
 * kernel opens no directory, so what is opened for reading is looked at; the index is told. */
static int operate_open_no_directory(struct target *t, int fd)
{
    struct statx stat;
    if (sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stat) != 0 || !S_ISDIR(stat.stx_mode))
        return fd;
    sys_close(fd);
    target_forget(t);
    return -EISDIR;
}

static int operate_open_give(struct target *t, int flags, mode_t mode)
{
    target_yield_number(t);
    int fd = sys_openat(t->real_at, t->real_path, flags, mode);
    if (fd == -EMFILE && target_yield_pin(t))
        fd = sys_openat(t->real_at, t->real_path, flags, mode);
    return fd;
}

/* A file that is known. -ENOENT: it is not there after all. */
static int operate_open_known(struct target *t, int flags, mode_t mode)
{
    bool exclusive = flags & O_EXCL;
    int code = flags & O_CREAT ? target_settled(t) : 0; /* its type may be that of what was there before */
    if (code != 0 || !t->found.known)
        return code != 0 ? code : -ENOENT;
    if ((flags & O_CREAT) && (exclusive || t->found.entry.type == DT_DIR)) {
        code = operate_open_there(t);
        if (code == 0 && BROKEN("loser-unlinks"))
            sys_unlinkat(t->real_at, t->real_path, 0);
        return code != 0 ? code : exclusive ? -EEXIST : target_was_replaced(t) ? TARGET_RETRY : -EISDIR;
    }
    if ((flags & O_CREAT) && t->sticky && (code = operate_open_may_in_sticky(t)) != 0)
        return code;
    /* Without O_CREAT: a file that vanishes in between must be reserved before it is made again. */
    code = (int)TARGET_CALL_NEAR(t, operate_open_give(t, flags & ~(O_CREAT | O_EXCL), mode));
    return code >= 0 && (flags & (O_CREAT | O_ACCMODE)) == (O_CREAT | O_RDONLY) ? operate_open_no_directory(t, code) : code;
}

/* The file system says that what was reserved exists: a program without the shim made it, in the trunk; in a
 * branch it is a file that the index did not know, which is confirmed as it is. */
static int operate_open_found_instead(struct target *t)
{
    struct statx stat;
    target_refresh(t);
    int code = root_of_stat(t->root, t->real_at, t->real_path, &stat);
    if (code == 0)
        create_commit_found(t, &stat);
    else
        target_withdraw(t);
    code = target_look(t);
    return code == 0 ? TARGET_RETRY : code;
}

/* Is that file the one that was just made at real_at/real_path? */
static bool operate_open_is_still_there(const struct target *t, int fd)
{
    struct statx made, there;
    return sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &made) == 0 &&
           sys_statx(t->real_at, t->real_path, AT_SYMLINK_NOFOLLOW, STATX_INO, &there) == 0 && made.stx_ino == there.stx_ino;
}

/* -ENOENT, as its path may say. */
static int operate_open_take_back(struct target *t, int fd)
{
    if (operate_open_is_still_there(t, fd))
        sys_unlinkat(t->real_at, t->real_path, 0);
    sys_close(fd);
    return -ENOENT;
}

/* By its path it comes into this node's own branch or nowhere; the descriptor of a leaf leads there whatever its branch is
 * called by then. */
static int operate_open_make_file(struct target *t, int flags, mode_t mode)
{
    int fd;
    target_come_to_leaf(t);
    do {
        HOOK("create-reserved");
        fd = operate_open_give(t, flags | O_CREAT | O_EXCL, mode);
        if (fd >= 0 && !target_leaf_holds(t))
            fd = operate_open_take_back(t, fd);
    } while (target_goes_on(t, fd));
    return (int)target_gone(t, fd);
}

/* First reserved, then made, also where the home is another node and the file comes into this node's own leaf:
 * daemon/rpc/RPC.md says what would break if both were done at once. */
static int operate_open_new(struct target *t, int flags, mode_t mode, uint16_t where)
{
    struct statx stat;
    int code = create_reserve(t, DT_REG, where);
    if (code != 0)
        return code;
    int fd = operate_open_make_file(t, flags, mode);
    HOOK("create-made");
    if (fd == -EEXIST) {
        target_come_near(t);
        return operate_open_found_instead(t);
    }
    /* What the kernel knows from having made it: a question to the file system would be a message for each file. */
    if (fd < 0) {
        target_withdraw(t);
    } else if (sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &stat) != 0) {
        create_commit_unseen(t, DT_REG);
    } else {
        create_commit(t, &stat);
        remote_made(t, &stat);
    }
    long result = fd;
    return target_has_moved(t, &result) ? TARGET_RETRY : (int)result;
}

/* What the call has is given back before a signal comes in, whose handler may leave it (siglongjmp). */
static int operate_open_new_alone(struct target *t, int flags, mode_t mode, uint16_t where)
{
    const int fd = operate_open_new(t, flags, mode, where);
    if (fd != TARGET_RETRY && fd != -EACCES)
        target_done(t);
    return fd;
}

static int operate_open_once(struct target *t, int flags, mode_t mode)
{
    if ((flags & O_CREAT) && t->slash)
        return -EISDIR;
    if (t->found.known) {
        int fd = operate_open_known(t, flags, mode);
        if (fd != -ENOENT || !(flags & O_CREAT))
            return fd;
    } else if (!(flags & O_CREAT)) {
        return (int)TARGET_CALL(t, operate_open_give(t, flags, mode));
    }
    int fd = CLAIM_UNINTERRUPTED(operate_open_new_alone(t, flags, mode, 0));
    /* This process may make it in the trunk alone (Landlock), or nowhere. */
    return fd == -EACCES && target_was_away(t) ? CLAIM_UNINTERRUPTED(operate_open_new_alone(t, flags, mode, MESSAGE_TRUNK))
                                               : fd;
}

/* What came under the name since it was looked for may be a symbolic link, which leads the call to another name. Or its path
 * leads to another directory. TARGET_RETRY, or what the native call answers where that is not ours. */
static int operate_open_follow(struct target *t, int flags, mode_t mode)
{
    const int at = t->at;
    const char *path = t->path;
    const bool follows = !(flags & (O_EXCL | O_NOFOLLOW));
    if (!t->unseen && (!follows || !t->found.known || t->found.entry.type != DT_LNK))
        return TARGET_RETRY;
    int how = target_find_again(t, TARGET_MAKES | (follows ? TARGET_FOLLOW : 0));
    return how == TARGET_MANAGED ? TARGET_RETRY : how < 0 ? how : sys_openat(at, path, flags, mode);
}

int operate_open(struct target *t, int flags, mode_t mode)
{
    int fd;
    if (flags & O_PATH)
        flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if ((flags & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY))
        fd = -EINVAL;
    else if ((flags & O_TMPFILE) == O_TMPFILE)
        fd = (int)TARGET_CALL(t, operate_open_give(t, flags, mode)); /* it gets no name */
    else
        do
            fd = operate_open_once(t, flags, mode);
        while (fd == TARGET_RETRY && (fd = operate_open_follow(t, flags, mode)) == TARGET_RETRY);
    target_done(t);
    return fd;
}

/* What is to be made besides regular files: a mode with its type, and what each type needs. */
struct made {
    mode_t mode;
    dev_t device;
    const char *link_text;
    int socket; /* if there is an address */
    const void *address;
    unsigned address_length;
};

static int operate_open_make_at(int at, const char *path, const struct made *what)
{
    if (what->address != NULL) {
        int code = (int)SYS3(SYS_bind, what->socket, what->address, what->address_length);
        return code == -EADDRINUSE ? -EEXIST : code;
    }
    if (S_ISDIR(what->mode))
        return sys_mkdirat(at, path, what->mode & 07777);
    if (S_ISLNK(what->mode))
        return sys_symlinkat(what->link_text, at, path);
    return (int)SYS4(SYS_mknodat, at, path, what->mode, what->device);
}

static int operate_open_make_once(struct target *t, const struct made *what)
{
    int code = t->found.known ? operate_open_there(t) : -ENOENT;
    if (code != -ENOENT)
        return code == 0 || code == -ENOTDIR ? -EEXIST : code;
    code = create_reserve(t, (uint8_t)IFTODT(what->mode), 0);
    if (code != 0)
        return code;
    HOOK("make-reserved");
    code = operate_open_make_at(t->real_at, t->real_path, what);
    HOOK("make-made");
    if (code == -EEXIST)
        return operate_open_found_instead(t) == TARGET_RETRY ? -EEXIST : -EIO;
    if (code != 0)
        target_withdraw(t);
    else
        create_commit_there(t, (uint8_t)IFTODT(what->mode));
    return code;
}

static int operate_open_make_alone(struct target *t, const struct made *what)
{
    const int code = operate_open_make_once(t, what);
    if (code != TARGET_RETRY)
        target_done(t);
    return code;
}

static int operate_open_make_here(struct target *t, const struct made *what)
{
    int code;
    if (t->slash && !S_ISDIR(what->mode)) {
        code = t->found.known ? operate_open_there(t) : -ENOENT;
        if (code == 0 || code == -ENOTDIR)
            code = -EEXIST;
        else if (code == -ENOENT)
            code = operate_open_make_at(t->at, t->path, what);
    } else {
        do
            code = CLAIM_UNINTERRUPTED(operate_open_make_alone(t, what));
        while (code == TARGET_RETRY && !t->unseen);
    }
    return code;
}

static int operate_open_make(struct target *t, const struct made *what)
{
    const int at = t->at;
    const char *path = t->path;
    int code, how = TARGET_MANAGED;
    do
        code = (int)target_gone(t, operate_open_make_here(t, what));
    while (code == TARGET_RETRY && (how = target_follow_again(t)) == TARGET_MANAGED);
    target_done(t);
    return how == TARGET_MANAGED ? code : how < 0 ? how : operate_open_make_at(at, path, what);
}

int operate_make(struct target *t, mode_t type_and_mode, dev_t device, const char *link_text)
{
    return operate_open_make(t, &(struct made){.mode = type_and_mode, .device = device, .link_text = link_text});
}

int operate_bind(struct target *t, int socket, const void *address, unsigned length)
{
    int code =
        operate_open_make(t, &(struct made){.mode = S_IFSOCK, .socket = socket, .address = address, .address_length = length});
    return code == -EEXIST ? -EADDRINUSE : code;
}
