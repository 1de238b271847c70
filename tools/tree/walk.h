/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Every directory of a root or of a part of it, each before those in it, in the order of names; no symbolic
 * links, not `.shunt`, nor what is in another root. What a step does to files is no matter to the walk. */

#include <pthread.h>

#include "api/folder.h"

/* Directories are listed ahead by so many threads, and at most so many of them: a file system that is asked over a network
 * answers many questions in the time of one. One of this node has its processors to share. */
#define WALK_THREADS 32
#define WALK_THREADS_LOCAL 8
#define WALK_AHEAD_MAX 64
#define WALK_DESCRIPTORS 16 /* of those that a process may have, one directory is listed ahead for so many */

enum {
    WALK_ONE_DEVICE = 1, /* leave out directories of another device than the root's */
    WALK_SETTLE = 2,     /* list with LISTING_SETTLE */
    WALK_AHEAD = 4,      /* list what comes next on other threads meanwhile: for a caller that only looks */
};

/* A directory, as it was found. */
struct walk_visit {
    struct folder folder;
    struct statx before; /* as it was before it was listed */
    int result;          /* 1: listed; 0: not to be walked; -errno */
    bool partial;        /* as that of struct walk */
};

enum walk_state { WALK_WAITING, WALK_TAKEN, WALK_DONE };

/* A directory that is yet to be walked. */
struct walk_step {
    enum walk_state state;
    struct walk_visit *visit; /* once it is DONE; NULL: no memory */
    char path[];
};

struct walk {
    struct union_root *root;
    struct known *known;                 /* the source of its listings while it is walked, NULL: there is none */
    const struct listing_source *source; /* before */
    int root_fd;
    unsigned flags;
    struct folder folder;
    struct statx before; /* of the directory, as it was before it was listed */
    bool partial;        /* something was left out: of another device, of a name of shunt's own, or what may not be read */
    /* The lock's from here on: the walker's thread alone changes `steps`, all change what is in them. */
    pthread_mutex_t lock;
    pthread_cond_t work, done; /* there is a step that waits; a step is done */
    struct walk_step **steps;  /* the next one last */
    size_t count, room;
    size_t ahead;      /* of them, how many are TAKEN or DONE, */
    size_t ahead_most; /* and may be */
    bool is_at_end;    /* the threads are to end */
    size_t threads_count, threads_most;
    pthread_t threads[WALK_THREADS];
};

/* Is it another root, which lies in that of the folder? `error`: how its listing went. */
bool walk_is_another_root(const struct folder *, int error);

/* `from` is relative to the root; "." is all of it. Until walk_finish directories of that root are listed from catalogues that
 * prove them. 0 or -errno; walk_finish is called in any case. */
int walk_init(struct walk *, struct union_root *, const char *from, unsigned flags);
/* 1 with the next one listed in walk->folder, 0 at the end. -errno: walk->folder.path could not be opened (fd -1) or not
 * listed; the walk goes on with the next call, and where a bad marker (-EBADMSG) is why, also into what is below. -EMULTIHOP:
 * it is a root of its own. */
int walk_next(struct walk *);
void walk_finish(struct walk *);
