/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What is done with plain files and directories in more than one system call. All answer -errno on failure;
 * all are blocking, allocate nothing and share no state. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"
#include "base/text.h"

#define DISK_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define DISK_PROC_SIZE 32

/* /proc/self/fd/N, the name of a descriptor, for the calls that take no O_PATH descriptor. */
void disk_proc(char to[DISK_PROC_SIZE], int fd);
/* A descriptor to read a directory with, of one that may be O_PATH. */
int disk_reopen(int directory);
/* What an answer of the file system says of whether something is there: -errno if it, or this process, could not look (EIO,
 * ESTALE, EINTR, no memory, no descriptor), so that it is not known; else 0: what is not there, may not be looked at, or is of
 * another kind. */
int disk_look_failure(int code);
/* The path of a directory that stands. The length; -ENOENT if it was removed. */
int disk_canonical(int directory, char *to, size_t size);

/* Reads a small regular file whole. The length; -EBADMSG: no regular file, or not smaller than `size`. */
ssize_t disk_read(int dir, const char *name, char *to, size_t size);
/* ... of an open one, whatever it is. */
ssize_t disk_read_all(int fd, char *to, size_t size);
/* The directory at root/path, to which no symbolic link below the root leads: O_PATH, or -errno. */
int disk_open_below(const char *root, const char *path);
/* What is at root/path, whatever this node's kernel remembers: the attributes of each directory on the way are asked for first,
 * after which an NFS client looks names up again (nfs_check_verifier of Linux 6.1) and others have nothing to look up. `parent`
 * is the last directory that was reached (STATX_NLINK, and if it holds the name, what dirid_of needs), with inode number 0
 * none; of the name itself type and inode number are told. 0; -ENOENT: a name on the way is not there; another -errno. */
int disk_look_freshly(const char *root, const char *path, struct statx *parent, struct statx *stat);
/* Makes a file that is not there yet, with exactly that mode and its contents on disk, or leaves nothing. */
int disk_write_new(int dir, const char *name, const char *from, size_t length, mode_t mode);
/* Makes a directory that is the caller's alone (0700, and not less, whatever the umask). */
int disk_make_private(int dir, const char *name);
/* Is it immutable or append-only (chattr(1))? Then it keeps its name, and if it is a directory, all in it do. Of the directory
 * itself if `name` is empty; false where the file system does not tell. */
bool disk_is_fixed(int dir, const char *name);
/* A rename that replaces nothing (-EEXIST), also where the file system knows no RENAME_NOREPLACE. */
int disk_rename_new(int from_dir, const char *from, int to_dir, const char *to);
/* The same for one of many files of a file system, where that has no such rename. */
struct disk_rename {
    bool careful; /* by a link and a removal, else by a look at the name and a rename, between which another program could make
                     it, and lose what it made */
    bool unknown; /* to be zero at first: that it has no such rename is known */
    bool linked;  /* the file has both names, and the first is the caller's to remove. A server that writes a journal takes
                     the next file's link meanwhile; the removal of a name of a file that it has just linked has to wait for
                     that to be written */
};
int disk_rename_next(struct disk_rename *, int from_dir, const char *from, int to_dir, const char *to);

uint64_t disk_random(void);
/* PREFIX and 16 hexadecimal digits that no other process makes. */
void disk_temporary(struct text *, const char *prefix);

static inline uint64_t disk_device(const struct statx *stat)
{
    /* As st_dev has it (gnu_dev_makedev). */
    uint64_t major = stat->stx_dev_major, minor = stat->stx_dev_minor;
    return (major & 0xfffff000) << 32 | (major & 0xfff) << 8 | (minor & 0xffffff00) << 12 | (minor & 0xff);
}

/* The names in a directory, without `.` and `..`. The memory is the caller's and must be suitably aligned. */
struct disk_scan {
    int fd;
    char *buffer;
    size_t size, filled, at;
};

struct disk_name {
    uint64_t ino;
    int64_t position;
    uint16_t record;
    uint8_t type;
    char name[];
};

/* Is that on a file system whose client asks a server for each name, and is told of many at once when it reads a directory
 * (NFS, CephFS, Lustre, FUSE)? Not where the node itself reads the disk, be it shared (OCFS2, GFS2). */
bool disk_has_server(int fd);
/* Is that on NFS, whose client may go by names that another node has changed since, unless it is mounted otherwise? */
bool disk_keeps_names(int fd);
/* Reads a directory for the sake of that alone: what is looked up in it next is asked of nobody. */
void disk_prefetch_names(int directory, const char *path);

int disk_scan_init(struct disk_scan *, int dir, const char *path, void *buffer, size_t size);
/* Takes over an open descriptor. */
void disk_scan_of(struct disk_scan *, int fd, void *buffer, size_t size);
/* 1, 0 at the end, or -errno. The name lives until the next call. */
int disk_scan_next(struct disk_scan *, const struct disk_name **);
void disk_scan_finish(struct disk_scan *);
