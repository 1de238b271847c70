/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* A root as FUSE shows it. The server is a client of the session as every other process under shunt: it makes the calls of
 * libc, and the preload library makes them exact. Nothing of the union is known here.
 *
 * The kernel keeps neither names nor attributes (both timeouts are 0), so what another process changed is seen at once. It
 * keeps the target of a symbolic link, which never changes, and pages of open files (pages.h).
 *
 * Where no session serves the root, reader.h finds the names, and what is found is only read.
 *
 * With allow_other, which is root's, an operation that permissions decide is begun by view_take_user: the kernel below decides
 * as it would have for the process that asks. What is done through an open descriptor is decided already. */

#include <fuse3/fuse_lowlevel.h>

#include <stdbool.h>

#include "inode.h"

struct reader;

struct view {
    struct inode_table inodes;
    struct reader *reader; /* NULL: the preload library makes the union. Else it is to be read, and this has the names */
    struct fuse_session *session;
    struct pages_dropper dropper;
    bool is_for_others; /* allow_other */
};

/* The operations, a file for each kind; each adds its own. */
void view_add_names(struct fuse_lowlevel_ops *);
void view_add_attributes(struct fuse_lowlevel_ops *);
void view_add_directories(struct fuse_lowlevel_ops *);
void view_add_files(struct fuse_lowlevel_ops *);
void view_add_locks(struct fuse_lowlevel_ops *);

struct view *view_of(fuse_req_t);
struct inode *view_inode(fuse_req_t, fuse_ino_t);
/* Of what `parent` has under `name` now, one lookup more. 0 or errno. */
int view_lookup(fuse_req_t, fuse_ino_t parent, const char *name, struct fuse_entry_param *);
/* ... of what is open as `fd`, which was opened as that name. */
int view_lookup_open(fuse_req_t, int fd, fuse_ino_t parent, const char *name, struct fuse_entry_param *);
/* Which inode it is that has these attributes. */
void view_tell(struct fuse_entry_param *, struct inode *);
/* /proc/self/fd/N of an inode: leads to it whatever its name is by now, and where it is a symbolic link, to that. */
#define VIEW_PATH 40
const char *view_path(const struct inode *, char to[VIEW_PATH]);
/* The result of a call of libc: 0, or -1 with errno. */
void view_reply(fuse_req_t, long result);
/* This thread makes files with the umask of the process that asked. */
void view_take_umask(fuse_req_t);
/* With allow_other: this thread has from here on the rights of the process that asked, or the server's own. 0 or errno. */
int view_take_user(fuse_req_t);
int view_take_own(fuse_req_t);
/* As view_take_user. True: it failed, and that is replied. */
bool view_is_refused(fuse_req_t);
