/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "union/disk.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "base/hook.h"
#include "union/identity.h"

#define DISK_PREFETCH_BUFFER 32768

void disk_proc(char to[DISK_PROC_SIZE], int fd)
{
    struct text t;
    text_init(&t, to, DISK_PROC_SIZE);
    text_add(&t, "/proc/self/fd/");
    text_number(&t, (uint64_t)fd, 10);
}

/* "." asks for search permission, /proc/self/fd does not, but may be missing. */
int disk_reopen(int directory)
{
    int fd = sys_openat(directory, ".", DISK_DIRECTORY, 0);
    if (fd != -EACCES)
        return fd;
    char proc[DISK_PROC_SIZE];
    disk_proc(proc, directory);
    fd = sys_openat(AT_FDCWD, proc, DISK_DIRECTORY & ~O_NOFOLLOW, 0);
    return fd == -ENOENT ? -EACCES : fd;
}

int disk_canonical(int directory, char *to, size_t size)
{
    char proc[DISK_PROC_SIZE];
    disk_proc(proc, directory);
    ssize_t length = sys_readlinkat(AT_FDCWD, proc, to, size);
    if (length < 0)
        return (int)length;
    if ((size_t)length == size)
        return -ENAMETOOLONG;
    to[length] = '\0';
    struct statx here, there;
    int error = sys_statx(directory, "", AT_EMPTY_PATH, STATX_INO, &here);
    if (error == 0)
        error = sys_statx(AT_FDCWD, to, 0, STATX_INO, &there);
    if (error < 0)
        return error;
    return here.stx_ino == there.stx_ino && disk_device(&here) == disk_device(&there) ? (int)length : -ENOENT;
}

ssize_t disk_read_all(int fd, char *to, size_t size)
{
    size_t length = 0;
    while (length < size) {
        ssize_t more = sys_read(fd, to + length, size - length);
        if (more == -EINTR)
            continue;
        if (more < 0)
            return more;
        if (more == 0)
            return (ssize_t)length;
        length += (size_t)more;
    }
    return -EBADMSG;
}

ssize_t disk_read(int dir, const char *name, char *to, size_t size)
{
    /* O_NONBLOCK: a FIFO in its place must not hold us. */
    int fd = sys_openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0)
        return fd == -ELOOP || fd == -ENXIO ? -EBADMSG : fd;
    struct statx stat;
    ssize_t length = sys_statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &stat);
    if (length == 0)
        length = S_ISREG(stat.stx_mode) ? disk_read_all(fd, to, size) : -EBADMSG;
    sys_close(fd);
    return length;
}

static int disk_write_all(int fd, const char *from, size_t length)
{
    while (length > 0) {
        ssize_t wrote = sys_write(fd, from, length);
        if (wrote == -EINTR)
            continue;
        if (wrote <= 0)
            return wrote < 0 ? (int)wrote : -EIO;
        from += wrote;
        length -= (size_t)wrote;
    }
    return 0;
}

/* What a umask took away. */
static int disk_set_mode(int fd, mode_t mode)
{
    struct statx now;
    int error = sys_statx(fd, "", AT_EMPTY_PATH, STATX_MODE, &now);
    return error < 0 || (now.stx_mode & 07777) == mode ? error : sys_fchmod(fd, mode);
}

int disk_write_new(int dir, const char *name, const char *from, size_t length, mode_t mode)
{
    int fd = sys_openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return fd;
    int error = disk_set_mode(fd, mode);
    if (error == 0)
        error = disk_write_all(fd, from, length);
    /* A file system that delays allocation may otherwise keep the name and lose the words. Not fdatasync: CephFS's client in
     * the kernel (Linux 6.1) tells the server of the size with fsync alone, and others find the file empty once this node is
     * lost. */
    if (error == 0)
        error = (int)SYS1(SYS_fsync, fd);
    int closed = sys_close(fd);
    if (error == 0)
        error = closed;
    if (error < 0)
        sys_unlinkat(dir, name, 0);
    return error;
}

int disk_make_private(int dir, const char *name)
{
    int error = sys_mkdirat(dir, name, 0700);
    return error < 0 ? error : (int)SYS3(SYS_fchmodat, dir, name, 0700);
}

bool disk_is_fixed(int dir, const char *name)
{
    struct statx stat;
    return sys_statx(dir, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat) == 0 &&
           (stat.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
}

int disk_look_failure(int code)
{
    const bool fails =
        code == -EIO || code == -ESTALE || code == -EINTR || code == -ENOMEM || code == -EMFILE || code == -ENFILE;
    return fails ? code : 0;
}

int disk_rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
    struct disk_rename renaming = {.careful = true};
    int error = disk_rename_next(&renaming, from_dir, from, to_dir, to);
    if (error < 0 || !renaming.linked)
        return error;
    error = sys_unlinkat(from_dir, from, 0);
    if (error < 0 && error != -ENOENT) /* it has one name, as before */
        sys_unlinkat(to_dir, to, 0);
    return error;
}

static int disk_look_and_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    struct statx stat;
    int error = sys_statx(to_dir, to, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stat);
    if (error != -ENOENT)
        return error == 0 ? -EEXIST : error;
    HOOK("rename-looked");
    return sys_renameat2(from_dir, from, to_dir, to, 0);
}

int disk_rename_next(struct disk_rename *renaming, int from_dir, const char *from, int to_dir, const char *to)
{
    renaming->linked = false;
    int error = renaming->unknown ? -EINVAL : sys_renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE);
    if (error != -EINVAL && error != -ENOSYS)
        return error;
    renaming->unknown = true;
    HOOK("rename-refused");
    if (!renaming->careful)
        return disk_look_and_rename(from_dir, from, to_dir, to);
    error = sys_linkat(from_dir, from, to_dir, to, 0);
    renaming->linked = error == 0;
    return error == -EPERM ? disk_look_and_rename(from_dir, from, to_dir, to) : error; /* no link to a directory */
}

uint64_t disk_random(void)
{
    uint64_t number;
    if (SYS3(SYS_getrandom, &number, sizeof number, 0) == (long)sizeof number)
        return number;
    return (clock_of(CLOCK_REALTIME) * 0x9e3779b97f4a7c15u) ^ ((uint64_t)sys_getpid() << 40);
}

void disk_temporary(struct text *t, const char *prefix)
{
    uint64_t number = disk_random();
    text_add(t, prefix);
    for (int shift = 60; shift >= 0; shift -= 4)
        text_number(t, number >> shift & 15, 16);
}

int disk_scan_init(struct disk_scan *scan, int dir, const char *path, void *buffer, size_t size)
{
    int fd = sys_openat(dir, path, DISK_DIRECTORY, 0);
    disk_scan_of(scan, fd, buffer, size);
    return fd < 0 ? fd : 0;
}

void disk_scan_of(struct disk_scan *scan, int fd, void *buffer, size_t size)
{
    *scan = (struct disk_scan){.fd = fd, .buffer = buffer, .size = size};
}

static bool disk_is_dot(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

int disk_scan_next(struct disk_scan *scan, const struct disk_name **name)
{
    do {
        if (scan->at >= scan->filled) {
            ssize_t filled = sys_getdents64(scan->fd, scan->buffer, scan->size);
            if (filled <= 0)
                return filled == -ENOENT ? 0 : (int)filled;
            scan->filled = (size_t)filled;
            scan->at = 0;
        }
        *name = (const struct disk_name *)(const void *)(scan->buffer + scan->at);
        scan->at += (*name)->record;
    } while (disk_is_dot((*name)->name));
    return 1;
}

void disk_scan_finish(struct disk_scan *scan)
{
    if (scan->fd >= 0)
        sys_close(scan->fd);
    scan->fd = -1;
}

/* The next directory of a path, whose first component has `length` bytes. Closes `fd`. */
static int disk_step(int fd, const char *path, size_t length)
{
    char name[NAME_MAX + 1];
    if (length >= sizeof name) {
        sys_close(fd);
        return -ENAMETOOLONG;
    }
    memcpy(name, path, length);
    name[length] = '\0';
    const int next = sys_openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    sys_close(fd);
    return next;
}

int disk_open_below(const char *root, const char *path)
{
    int fd = sys_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    while (fd >= 0 && *path != '\0') {
        const size_t length = strcspn(path, "/");
        fd = disk_step(fd, path, length);
        path += length + strspn(path + length, "/");
    }
    return fd;
}

int disk_look_freshly(const char *root, const char *path, struct statx *parent, struct statx *stat)
{
    const int fresh = AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC;
    int fd = sys_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    parent->stx_ino = 0;
    while (fd >= 0) {
        const size_t length = strcspn(path, "/");
        int code = sys_statx(fd, "", AT_EMPTY_PATH | fresh, STATX_BASIC_STATS | STATX_BTIME, parent);
        if (code == 0 && path[length] == '\0') {
            identity_add_handle(fd, "", AT_EMPTY_PATH, parent);
            code = sys_statx(fd, path, fresh, STATX_TYPE | STATX_INO, stat);
        }
        if (code != 0 || path[length] == '\0') {
            sys_close(fd);
            return code;
        }
        fd = disk_step(fd, path, length);
        path += length + strspn(path + length, "/");
    }
    return fd;
}

/* Magic numbers of statfs(2); linux/magic.h has not all of them. */
static const uint32_t disk_local[] = {
    EXT4_SUPER_MAGIC,      XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, F2FS_SUPER_MAGIC,
    OVERLAYFS_SUPER_MAGIC, 0x2fc12fc1, /* ZFS */
    OCFS2_SUPER_MAGIC,     0x01161970, /* GFS2 */
};

bool disk_has_server(int fd)
{
    struct statfs fs;
    if (SYS2(SYS_fstatfs, fd, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof disk_local / sizeof *disk_local; i++)
        if ((uint32_t)fs.f_type == disk_local[i])
            return false;
    return true;
}

bool disk_keeps_names(int fd)
{
    struct statfs fs;
    return SYS2(SYS_fstatfs, fd, &fs) == 0 && (uint32_t)fs.f_type == NFS_SUPER_MAGIC;
}

void disk_prefetch_names(int directory, const char *path)
{
    char buffer[DISK_PREFETCH_BUFFER] __attribute__((aligned(8)));
    struct disk_scan scan;
    const struct disk_name *name;
    if (disk_scan_init(&scan, directory, path, buffer, sizeof buffer) != 0)
        return;
    while (disk_scan_next(&scan, &name) > 0)
        ;
    disk_scan_finish(&scan);
}
