/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the calls mean for a target under a root: one meaning, one function. All answer what the system call
 * would, zero or positive, or -errno. All consume the target (target_done). Async-signal-safe and
 * thread-safe. */

#include <sys/stat.h>
#include <sys/types.h>

#include "shim/target.h"

/* The other side of a two-path call: a target, or words that are not ours. */
struct side {
    bool is_managed;
    struct target target; /* if managed */
    int at;
    const char *path;
};

int operate_open(struct target *, int flags, mode_t mode);
int operate_unlink(struct target *);
int operate_rmdir(struct target *);
/* mkdir (type S_IFDIR), mknod (any other), symlink (S_IFLNK, with `link_text`). */
int operate_make(struct target *, mode_t type_and_mode, dev_t device, const char *link_text);
/* The address is one whose words name the target. -EADDRINUSE if there is something of that name. */
int operate_bind(struct target *, int socket, const void *address, unsigned length);
int operate_rename(struct side *from, struct side *to, unsigned flags);
int operate_link(struct side *from, struct side *to, int flags);
/* Moves a file to the trunk, where a loader and its $ORIGIN expect it; 0 if it is there already, or is no
 * file. */
int operate_promote(struct target *);

/* A directory (at, path, flags of statx): what its mirrors must learn of a change, and what it tells of its
 * times. */
void directory_follow(int at, const char *path, int flags); /* after a change of mode, owner or attributes; errno stays */
void directory_inherits(int fd); /* after somebody else may have changed those of this trunk directory */
void directory_renamed(const char *from, const char *to);  /* after a native rename: it may be one above a root */
int directory_settle(int at, const char *path, int flags); /* before its times are set */
int directory_watch(int at, const char *path, int flags);  /* before somebody waits for its events */
/* Has an open directory of a root loaded: 1, 0: it is not beneath it any more, or -errno. */
int directory_load(int fd, struct names_root *, struct dirid);
int directory_sync(int fd); /* after its fsync */
/* A root has a directory in it that the application does not see: its link does not count. */
bool directory_is_root(uint64_t device, uint64_t inode);
/* The times of the trunk become those of the directory: 1, 0: they are the whole truth, or -errno. */
int directory_times(int at, const char *path, int flags, uint64_t device, uint64_t *modified, uint64_t *changed);
