/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Pages of files that the kernel keeps. Before each read it asks for the attributes, and throws the pages away if the size or
 * the time of modification is another one than it was told before. These two do not tell of contents that change twice within a
 * tick of the file system's clock, nor where the time is set back. The time of change does (st_ctim: nobody sets it), once it
 * has stood for so long that what changes the file later gives it another one; pages of before that are in doubt, and are
 * thrown away before the attributes are told.
 *
 * Thread-safe. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>

/* Of one inode. All zeros: nothing was told yet. */
struct pages {
    off_t size; /* as the kernel was told last */
    struct timespec modified, changed;
    uint64_t stood_since;     /* by clock_monotonic: `changed` was seen first before that */
    uint64_t doubts, settled; /* how many there were, and how many of them are over */
};

struct pages_to_drop;
STAILQ_HEAD(pages_queue, pages_to_drop);

/* Throws them away one by one: this waits for reads and writes of the same file, which the threads that serve have to answer.
 */
struct pages_dropper {
    pthread_mutex_t lock;
    pthread_cond_t is_asked;
    struct pages_queue queue;
};

struct fuse_req;
struct fuse_session;

void pages_dropper_init(struct pages_dropper *);
/* The thread's; does not come back. */
void pages_dropper_run(struct pages_dropper *, struct fuse_session *);

/* Before the kernel is given some to keep. */
void pages_are_read(struct pages *);
void pages_are_written(struct pages *);
/* The kernel is told these attributes. */
void pages_told(struct pages *, const struct stat *);
/* The same, in answer to a GETATTR: replies, at once or after the pages are thrown away. `number` is the kernel's, of that
 * inode. */
void pages_reply(struct pages_dropper *, struct pages *, struct fuse_req *, uint64_t number, const struct stat *);
