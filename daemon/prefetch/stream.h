/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* Streams of names that a thread makes, removes or renames one after the other: what can be predicted of it. For the files of
 * this room alone. */

#include "home/home.h"
#include "home/sequence.h"
#include "request/channel.h"
#include "shuntd.h"

#define ALL_MAX 8192 /* names that are asked for ahead, of all: 6 MB here, and 3 MB at their homes */
#define RUN_MIN 2    /* so often must the step have been the one before: four names; twice as often after each that was wrong */
#define RUN_MAX 1024
#define WINDOW_MIN 4 /* names that are looked ahead at first; four times as many each time, as long as that goes well */
#define WINDOW_MAX 512
#define WINDOW_CROWDED 128 /* ... where half of ALL_MAX are asked for ahead */

/* A thread is known by its queue pair. */
struct stream {
    uint64_t client;
    struct dirid dir;
    struct sequence sequence;
    unsigned run; /* how long it must be */
    unsigned window;
    unsigned reserved; /* so far after the last name all have been asked for whose homes are elsewhere */
    unsigned granted;  /* ... and so far all have been granted */
    uint64_t used;     /* monotonic, when it named the last one */
    uint64_t behind;   /* the youngest operation of all when another sequence began: older ones are of no use any more */
};

/* Of renames: the stream is that of the old names, and the new ones follow each other, too. */
struct rename_stream {
    struct stream old;
    struct dirid to_dir;
    struct sequence to;
    unsigned made; /* how often in a row the old name was the one that the thread had made last */
    uint64_t kept; /* the operation of such a name, which is still claimed; 0: none */
    struct dirid last_dir;
    uint64_t last_hash; /* of the name that it made last */
};

struct prefetch {
    uint64_t ticked; /* monotonic, when the last tick came */
    bool forgets;    /* grants are settled, and none are to follow */
    struct stream streams[CHANNEL_QPS], removers[CHANNEL_QPS];
    struct rename_stream renamers[CHANNEL_QPS];
};

/* A name that is to be asked for ahead. */
struct prefetch_name {
    enum operation_kind kind;
    struct home_dir *dir;
    uint32_t qp;
    const char *name;
    size_t length;
    struct record_entry entry; /* as for the question */
    operation_next *completion;
};

/* Another daemon is home of it. */
bool prefetch_is_elsewhere(const struct shuntd *, const struct home_dir *, const char *name, size_t length);
/* The operation on the first (0) or the second name (1) of a request of this node. NULL: nobody is at work on it. */
struct operation *prefetch_operation_on(const struct shuntd *, const struct message *, unsigned i);
/* Asks for it. 0; 1: not for it nor for those after it; or a fatal -errno. */
int prefetch_ask(struct shuntd *, const struct prefetch_name *);
/* The operation on it, which is begun if its home is here. NULL: there is none. 0 or a fatal -errno. */
int prefetch_begin(struct shuntd *, const struct prefetch_name *, struct operation **);
/* Has its home given it, and is it of that kind and queue pair, so that it may be granted? */
bool prefetch_may_be_granted(const struct operation *, enum operation_kind, uint32_t qp);
/* So many names ahead, after so many in a row. */
unsigned prefetch_to_be_granted(unsigned run);
/* Is there room for one more of that stream in the queue pair? */
bool prefetch_has_room(struct shuntd *, const struct stream *, uint32_t qp);
/* Renames, as far as their homes have given them, in the order in which they are to be asked for. 0 or a fatal -errno. */
int rename_ahead_grant_more(struct shuntd *, struct home_dir *, uint32_t qp);
/* The operation on the name that a file gets by the next rename, which is to be made under that of `made`, so far ahead; NULL:
 * that cannot be told, or its home has not given it. 0 or a fatal -errno. */
int rename_ahead_find_new(struct shuntd *, const struct operation *made, unsigned ahead, struct operation **to);
/* The next names are to be asked for: how far ahead, which is window; 0: they were, or there is no memory. */
unsigned prefetch_widen(const struct shuntd *, struct stream *);
void prefetch_begin_again(struct stream *, uint64_t client, struct dirid dir);
/* The last name did not follow from those before it. */
void prefetch_breaks_off(struct shuntd *, struct stream *);
