/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Directory streams over the union: `.`, `..`, and then the names in the order of their hashes, from the
 * index.
 *
 * A stream lives at an address of its own range, so ours are told from libc's by their pointer. It holds
 * libc's stream (and with it the descriptor, which is one of the trunk directory). A position (telldir,
 * d_off) is 0 before `.`, 1 before
 * `..`, 2 before the names, else the hash after which to go on: it stays valid whatever comes and goes. Not
 * for signal handlers; one stream is for one thread at a time, as POSIX has it. */

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "names/names.h"

#define STREAM_BUFFER 8192
#define STREAM_LARGE (128u << 10) /* of one that goes on: each filling may cost a round through all daemons */

/* A place in a union listing: all there is to know to go on. */
struct listing_at {
    struct names_root *root;
    struct dirid id;
    int fd;
    uint64_t position;
    uint64_t end; /* the position, if there was nothing after it when it was last filled; else 0 */
};

/* Fills `to` with as many struct dirent64 as fit; the bytes, 0 at the end, or -errno (-EINVAL: not even one
 * fits). */
long dir_stream_fill(struct listing_at *, char *to, size_t size);

struct dir_stream {
    uint32_t taken;
    DIR *libc;
    struct listing_at at;
    uint64_t told;       /* the position of the entry that readdir gives next */
    size_t next, filled; /* in the buffer */
    char *large;         /* the buffer, once the first is not enough; NULL before */
    char first[STREAM_BUFFER] __attribute__((aligned(8)));
};

/* The memory of all streams: maps it; unmaps it, where no other thread can be in it, if no stream is open. */
void dir_stream_map(void);
void dir_stream_unmap(void);
bool dir_stream_is_ours(const DIR *);
/* Takes libc's stream over if its directory is under a root: ours, or `libc` itself; NULL and errno if that
 * failed (libc's is closed then). */
DIR *dir_stream_over(DIR *libc);
/* Its root was not found (`code`), since the directory has no name any more; another one may be where it was. So it has no
 * names: libc's stream says that. */
bool dir_stream_finds_removed(int code, int fd);
void dir_stream_free(struct dir_stream *);
/* The next entry, or NULL at the end, or NULL with errno. */
struct dirent64 *dir_stream_next(struct dir_stream *);
