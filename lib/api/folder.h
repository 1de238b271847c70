/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* One directory of a union, opened: its trunk directory, and its listing once it was asked for. Allocates; no
 * state is shared; not for signal handlers. */

#include "base/sys.h"
#include "union/listing.h"

struct folder {
    int fd;              /* O_PATH, of the trunk directory; -1 when closed */
    char path[PATH_MAX]; /* relative to the root; "." is the root itself */
    bool listed;
    struct listing listing; /* if listed */
};

/* `path` is relative to the descriptor of the root, with no symbolic link at its end. 0 or -errno. */
int folder_open(struct folder *, int root_fd, const char *path);
/* Takes over an open descriptor. 0 or -ENAMETOOLONG (the descriptor is the caller's still). */
int folder_of(struct folder *, int fd, const char *path);
/* Fills the listing, unless that is done. `flags` as in listing_init. 0 or -errno. */
int folder_list(struct folder *, const struct union_root *, unsigned flags);
/* Gives the listing back, if there is one: what is there is listed again after this. */
void folder_unlist(struct folder *);
/* May be called twice, and on one that never opened if fd is -1. */
void folder_close(struct folder *);

/* PATH/NAME relative to the root, without "./" in front. 0 or -ENAMETOOLONG. */
int folder_path(const struct folder *, const char *name, char *to, size_t size);
/* statx of one of its names (NULL: of the directory) where it really lies, links not followed. */
int folder_stat(const struct folder *, const struct union_root *, const struct union_name *, struct statx *);
/* Where it really lies. 0 or -ENAMETOOLONG. */
int folder_where(const struct folder *, const struct union_root *, const struct union_name *, char *to, size_t size);
