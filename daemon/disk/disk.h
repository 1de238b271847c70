/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The daemon's hands on the file system: work that may take milliseconds runs in threads of its own, side by
 * side, so that the thread that decides never waits for a disk. */

#include <stdbool.h>

#include "base/list.h"
#include "index/record.h"

struct shuntd;
struct disk;
struct stall_watch;

/* A job is made by main's thread, carried out by one of the threads here (which may touch the job and what
 * never changes: options, root, run_dir, branch_path; and ask coordinator_has_lease), and finished by main's thread within
 * a batch. */
struct disk_job {
    struct link link;
    void (*carry_out)(struct disk_job *, const struct shuntd *);
    int (*finish)(struct disk_job *, struct shuntd *); /* frees it; 0 or a fatal -errno */
};

/* `ring` is called by a thread here when a job is done, to wake main's. Of jobs that the file system holds up the watch is
 * told; NULL: requests do not wait for them. */
int disk_create(struct disk **, struct shuntd *, unsigned threads, void (*ring)(struct shuntd *), struct stall_watch *);
/* Lets the jobs under way end, drops none. Takes NULL. */
void disk_destroy(struct disk *);

void disk_submit(struct disk *, struct disk_job *);
/* The next job that is done, or NULL. */
struct disk_job *disk_next_done(struct disk *);
/* Are there jobs that were submitted and not yet taken back with disk_next_done? */
bool disk_is_busy(struct disk *);

/* Opens a directory of the trunk by its place and makes sure that it is the one that is meant: a descriptor
 * opened with O_PATH, -ESTALE if another directory is there, or another -errno. Where this node's kernel goes by names that
 * another node may have changed since, that is said only after it has looked them up again. */
int disk_open_trunk(const struct shuntd *, const char *path, struct dirid id);
/* Does that answer say that the directory is not there? It, or one above it, may have been renamed without this daemon
 * having heard of it yet. */
bool disk_is_elsewhere(int code);
/* The answer as -ESTALE if it says that, whatever is at its place by now. */
int disk_stale_if_elsewhere(int code);
