/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Files that the kernel reads, writes and maps itself, without the server (FUSE's passthrough: Linux 6.9, libfuse 3.17, and a
 * server that is the superuser's). As long as an inode is open, all that have it open do so in one way: the kernel refuses
 * another (EIO). One that appends has the server read and write, which looks at that flag each time, and maps the file itself.
 *
 * Thread-safe. */

#include <stdint.h>

struct fuse_conn_info;
struct fuse_file_info;
struct fuse_req;

/* Of an inode. All zeros: it is not open. */
struct backing {
    uint64_t opens;
    int id; /* the kernel's, of the file behind it; 0: the server reads and writes */
};

/* Once, before the first open. */
void backing_init(struct fuse_conn_info *);
/* One open more, of `fd`, by the thread that has the rights of the process that opens; says in the file's information what it
 * comes to. */
void backing_open(struct fuse_req *, struct backing *, int fd, struct fuse_file_info *);
/* One less. */
void backing_close(struct fuse_req *, struct backing *);
