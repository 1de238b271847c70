/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "where.h"

#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/kernel_abi.h"
#include "base/text.h"
#include "path/path.h"
#include "union/disk.h"
#include "caller.h"
#include "itself.h"
#include "kernel.h"

#define WHERE_LINKS 40 /* the kernel follows so many */
#define WHERE_BEYOND 64

static struct {
    const char *text;
    char paths[WHERE_ROOTS][PATH_MAX];
    uint64_t mounts[WHERE_ROOTS]; /* 0: not known */
    unsigned count;
    uint64_t devices[2 * WHERE_ROOTS]; /* also of roots that are not at their own path here */
    unsigned device_count;
} where_roots;

/* The mount at "/", where most paths are that are in no root. */
static struct {
    bool has_no_root;              /* none is on it, nor to be seen there */
    uint64_t beyond[WHERE_BEYOND]; /* marks of directories whose paths lead to other mounts; a wrong one costs time */
} where_top;

static void where_note_device(uint64_t device)
{
    if (device != 0 && where_roots.device_count < 2 * WHERE_ROOTS)
        where_roots.devices[where_roots.device_count++] = device;
}

static void where_note_mount(unsigned root)
{
    struct statx stat;
    const int code = sys_statx(AT_FDCWD, where_roots.paths[root], AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, &stat);
    where_roots.mounts[root] = code == 0 && (stat.stx_mask & STATX_MNT_ID) ? stat.stx_mnt_id : 0;
    where_note_device(code == 0 ? disk_device(&stat) : 0);
}

/* One text of SHUNT_ROOT_ID begins with the device, which is another number on another host; an empty one says nothing. */
static uint64_t where_device_in(const char *id)
{
    char *end;
    const unsigned long long device = strtoull(id, &end, 16);
    return *end == '-' ? device : 0;
}

/* Another mount than that of a root, of the same file system: what of it is seen there the library tells. */
static bool where_may_be_seen_by(const struct statx *stat)
{
    bool is_same = false;
    for (unsigned i = 0; i < where_roots.device_count; i++)
        is_same |= where_roots.devices[i] == disk_device(stat);
    for (unsigned i = 0; i < where_roots.count; i++)
        is_same &= where_roots.mounts[i] != stat->stx_mnt_id;
    return is_same && (stat->stx_mask & STATX_MNT_ID);
}

/* On a mount without a root there is nothing of one: what is mounted below a root is not served. */
static bool where_is_on_another_mount(const struct statx *stat)
{
    for (unsigned i = 0; i < where_roots.count; i++)
        if (where_roots.mounts[i] == 0 || where_roots.mounts[i] == stat->stx_mnt_id)
            return false;
    return (stat->stx_mask & STATX_MNT_ID) != 0;
}

/* What is there, without links on the way to what is open in the process that looks, or where it is: they lead the caller
 * elsewhere. 0 or -errno. */
static int where_see(const char *text, struct statx *stat)
{
    const struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
    const int fd = (int)SYS4(SYS_openat2, AT_FDCWD, text, &how, sizeof how);
    if (fd < 0)
        return fd;
    const int code = sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, stat);
    sys_close(fd);
    return code;
}

/* By what is there: 1: it is on another mount of a root's file system; 0: elsewhere, as of most paths; -1: that does not tell.
 */
static int where_by_what_is_there(const char *text)
{
    struct statx stat;
    if (where_see(text, &stat) != 0)
        return -1;
    if (where_may_be_seen_by(&stat))
        return 1;
    return !S_ISLNK(stat.stx_mode) && where_is_on_another_mount(&stat) ? 0 : -1;
}

static bool where_is_of_another_type(const char *path)
{
    struct statfs there, root;
    bool is_another = SYS2(SYS_statfs, path, &there) == 0;
    for (unsigned i = 0; i < where_roots.count && is_another; i++)
        is_another = SYS2(SYS_statfs, where_roots.paths[i], &root) == 0 && root.f_type != there.f_type;
    return is_another;
}

/* One mount may show directories with device numbers of their own, as btrfs does its subvolumes. A file system with the number
 * of a disk does not, nor does one show a root whose type is another. */
static void where_note_top(bool are_all_here)
{
    struct statx stat;
    where_top.has_no_root = where_see("/", &stat) == 0 && !where_may_be_seen_by(&stat) && where_is_on_another_mount(&stat) &&
                            (stat.stx_dev_major != 0 || (are_all_here && where_is_of_another_type("/")));
}

void where_start(const char *roots, const char *ids)
{
    char given[PATH_MAX];
    bool are_all_here = true;
    where_roots.text = roots;
    for (const char *at = roots; *at != '\0' && where_roots.count < WHERE_ROOTS; at += *at == ':') {
        const size_t length = strcspn(at, ":");
        where_note_device(where_device_in(ids));
        if (length > 0 && length < sizeof given) {
            memcpy(given, at, length);
            given[length] = '\0';
            if (realpath(given, where_roots.paths[where_roots.count]) != NULL)
                where_note_mount(where_roots.count++);
            else
                are_all_here = false;
        }
        at += length;
        ids += strcspn(ids, ":");
        ids += *ids == ':';
    }
    where_note_top(are_all_here);
}

bool where_are_the_roots(const char *roots)
{
    return strcmp(roots, where_roots.text) == 0;
}

static void where_join(struct text *text, const char *base, const char *path)
{
    if (path[0] != '/')
        text_add(text, base);
    if (path[0] != '/' && path[0] != '\0')
        text_add(text, "/");
    text_add(text, path);
}

/* Of a directory whose path is too long to be told: that of one above it. */
static ssize_t where_above(const char *name, char to[PATH_MAX])
{
    char own[CALLER_NAME];
    struct text text;
    ssize_t length = -ENAMETOOLONG;
    int fd = sys_openat(AT_FDCWD, name, O_PATH | O_CLOEXEC, 0);
    while (fd >= 0 && length == -ENAMETOOLONG) {
        const int above = sys_openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        sys_close(fd);
        fd = above;
        text_init(&text, own, sizeof own);
        text_add(&text, "/proc/self/fd/");
        text_number(&text, (unsigned)fd, 10);
        length = fd < 0 ? fd : sys_readlinkat(AT_FDCWD, own, to, PATH_MAX - 1);
    }
    if (fd >= 0)
        sys_close(fd);
    return length;
}

int where_text(pid_t tid, int at, const char *path, char to[WHERE_TEXT])
{
    char name[CALLER_NAME], base[PATH_MAX];
    const char *own = itself_after(path);
    struct text text;
    text_init(&text, to, WHERE_TEXT);
    if (own != NULL) {
        caller_name(tid, "", name);
        text_add(&text, name);
        text_add(&text, own);
        return text_ok(&text) ? 0 : -ENAMETOOLONG;
    }
    base[0] = '\0';
    if (path[0] != '/') {
        caller_name_descriptor(tid, at, name);
        ssize_t length = sys_readlinkat(AT_FDCWD, name, base, sizeof base - 1);
        if (length == -ENAMETOOLONG)
            length = where_above(name, base);
        if (length < 0)
            return (int)length;
        base[length] = '\0';
    }
    where_join(&text, base, path);
    return text_ok(&text) ? 0 : -ENAMETOOLONG;
}

static bool where_says_the_text(const char *text)
{
    for (unsigned i = 0; i < where_roots.count; i++)
        if (!path_is_plainly_foreign(where_roots.paths[i], text) &&
            path_verdict(where_roots.paths[i], NULL, text) != PATH_FOREIGN)
            return true;
    return false;
}

/* To what is open in the process that looks, or where it is. */
static bool where_is_its_own(const char *text)
{
    return strncmp(text, "/dev/fd/", 8) == 0 || strncmp(text, "/dev/std", 8) == 0 || itself_after(text) != NULL;
}

/* Not of a path that leads nowhere, or may not be gone. */
static bool where_cannot_look(long code)
{
    return code < 0 && code != -ENOENT && code != -ENOTDIR && code != -EACCES && code != -ENAMETOOLONG;
}

/* Of a directory. Where the text does not say that it leads through what a process has open, the path is not to do so by a
 * link: -ELOOP. */
static int where_open_directory(const char *path)
{
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                 .resolve = strncmp(path, "/proc/", 6) == 0 ? 0 : RESOLVE_NO_MAGICLINKS};
    return (int)SYS4(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

/* The real path of the directory that a path's last name is in. 1; 0: it cannot be reached; -errno: it cannot be told; -EXDEV:
 * it is on another mount of a root's file system. */
static int where_parent(const char *path, size_t length, char to[PATH_MAX])
{
    char name[CALLER_NAME];
    if (path_parent_text(path, length, to) != 0)
        return 0;
    const int fd = where_open_directory(to);
    if (fd < 0)
        return where_cannot_look(fd) ? fd : 0;
    struct text text;
    text_init(&text, name, sizeof name);
    text_add(&text, "/proc/self/fd/");
    text_number(&text, (unsigned)fd, 10);
    const ssize_t found = sys_readlinkat(AT_FDCWD, name, to, PATH_MAX - 1);
    struct statx stat;
    const int code = sys_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, &stat);
    sys_close(fd);
    to[found > 0 ? found : 0] = '\0';
    if (code != 0 || where_cannot_look(found))
        return code != 0 ? code : (int)found;
    return where_may_be_seen_by(&stat) ? -EXDEV : found > 0;
}

/* A directory that the kernel does not find may be a file in a branch, of which it knows nothing: takes off the last name. */
static bool where_go_up(char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    while (end > 0 && path[end - 1] != '/')
        end--;
    path[end > 0 ? end - 1 : 0] = '\0';
    return path[0] != '\0';
}

/* Where its directory is; with `follows` the text becomes that of a link at its end. 1: also of a link of /proc to what is
 * ours, and where it cannot be told, since the call, done here, then says why; 0, or -1: look at the path that it is by now. */
static int where_look(char path[WHERE_TEXT], bool follows)
{
    struct path_parts parts;
    char parent[PATH_MAX], link[PATH_MAX], whole[WHERE_TEXT];
    struct text text;
    path_split(&parts, path);
    const int found = where_parent(path, parts.last == PATH_NAME ? parts.parent_length : strlen(path), parent);
    if (found < 0)
        return 1;
    if (found == 0)
        return where_go_up(path) ? -1 : 0;
    text_init(&text, whole, sizeof whole);
    path[parts.name - path + (parts.last == PATH_NAME ? (long)parts.length : 0)] = '\0'; /* without slashes after it */
    where_join(&text, parent[1] == '\0' ? "" : parent, parts.last == PATH_NAME ? parts.name : "");
    const bool leads_on = follows || parts.slash, is_of_proc = strncmp(parent, "/proc/", 6) == 0;
    if (where_says_the_text(whole))
        return 1;
    if (parts.last != PATH_NAME || !(leads_on || is_of_proc))
        return 0;
    const ssize_t length = sys_readlinkat(AT_FDCWD, whole, link, sizeof link - 1);
    if (length <= 0)
        return length != -EINVAL && where_cannot_look(length);
    link[length] = '\0';
    if (!leads_on) /* of what is open in a branch it is not to tell the real place */
        return where_says_the_text(link);
    text_init(&text, path, WHERE_TEXT);
    where_join(&text, parent, link);
    return text_ok(&text) ? -1 : 0;
}

/* By the end of the directory's text, and its length. */
static uint64_t *where_mark_of(const char *text, size_t length, uint64_t *mark)
{
    const char *end = memrchr(text, '/', length);
    const size_t directory = (size_t)(end - text), size = directory < sizeof *mark ? directory : sizeof *mark;
    *mark = directory + 1;
    memcpy(mark, end - size, size);
    *mark += directory;
    return &where_top.beyond[(*mark * 0x9e3779b97f4a7c15) >> 58];
}

/* Does it lead nowhere but through the mount at "/", where no root is? What is no directory, or is not there, takes one call,
 * since nothing is opened. Nothing is mounted by that (before Linux 6.18 and its fellows, what is to be mounted on use may be).
 * False says nothing. */
static bool where_stays_on_top(const char *text, size_t length, bool follows)
{
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW),
                                 .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS};
    uint64_t mark, *beyond = where_mark_of(text, length, &mark);
    if (!where_top.has_no_root || *beyond == mark)
        return false;
    const int fd = (int)SYS4(SYS_openat2, AT_FDCWD, text, &how, sizeof how);
    if (fd >= 0)
        sys_close(fd);
    else if (fd == -EXDEV)
        *beyond = mark;
    return fd >= 0 || fd == -ENOTDIR || fd == -ENOENT;
}

static int where_step(char path[WHERE_TEXT], bool follows)
{
    const int how = where_by_what_is_there(path);
    return how < 0 ? where_look(path, follows) : how;
}

bool where_is_in_a_root(const char *text, bool follows)
{
    char path[WHERE_TEXT];
    if (where_says_the_text(text) || where_is_its_own(text))
        return true;
    const size_t length = strlen(text);
    if (text[0] != '/' || length >= PATH_MAX || where_stays_on_top(text, length, follows))
        return false;
    memcpy(path, text, length + 1);
    int how = where_step(path, follows);
    for (int i = 1; i < WHERE_LINKS && how < 0; i++)
        how = where_says_the_text(path) || where_is_its_own(path) ? 1 : where_step(path, true);
    return how > 0;
}
