/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What this daemon is home of: the single place where a name is decided.
 *
 * In the index are facts that others read; here is what is going on: which directories are loaded, which
 * leaves are open, which names somebody is at work on (a **flight**), and who waits for what. A name has at
 * most one flight. A request that meets a flight, or a directory with a job under way, is parked there and
 * served again when that ends. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "index/record.h"
#include "listen/listen.h"

struct shuntd;
struct home;

/* A request that waits. */
struct home_parked {
    struct link link;
    struct listen_request request;
};

#define HOME_OPEN_LEAVES 4

/* What a node has in a directory: its mirror's leaves, and what it did here in this session. */
struct home_share {
    struct home_share *next; /* of the same directory */
    uint16_t branch;         /* the node's, as in entries */
    bool touched;            /* its processes asked about the directory */
    uint32_t *leaf_names;    /* how many names each leaf of its mirror holds */
    uint32_t leaf_count;
    uint32_t open[HOME_OPEN_LEAVES];
    bool looked_into[HOME_OPEN_LEAVES]; /* by another node */
    uint32_t open_count;
    uint64_t births; /* names that it made here */
    uint64_t last_maker;
    uint32_t alternations; /* births whose maker was not the one before */
};

struct home_dir {
    struct home_dir *next; /* in its bucket */
    struct dirid id;
    struct record_dir record; /* as in the index */
    char *path;               /* where it was when last seen, relative to the root; "." is the root */
    bool working;             /* a job on it is under way */
    bool closing;             /* its rmdir is in flight: no births */
    unsigned flights;         /* of its names */
    struct link waiting;      /* parked until the job, the flights or the closing ends */

    struct home_share *shares;

    struct link changed; /* on home's list while record.changed is set */
    uint64_t changed_at; /* monotonic, of the last change */
    uint64_t touches;    /* how often it changed */
};

enum flight_kind { FLIGHT_BIRTH, FLIGHT_REMOVAL, FLIGHT_FROM, FLIGHT_TO, FLIGHT_CLOSE, FLIGHT_PROMOTION };

struct flight {
    struct flight *next; /* in its bucket */
    struct link all;
    enum flight_kind kind;
    struct home_dir *dir;
    struct home_dir *child; /* FLIGHT_CLOSE: the directory that is to go */
    struct flight *partner; /* FLIGHT_FROM and FLIGHT_TO have each other */
    bool exchange;
    bool had_before;
    struct record_entry before; /* what the index said, if had_before */
    struct record_entry place;  /* where the file will be if it goes well */
    uint64_t client;
    uint32_t lane, tag;               /* of the request that began it */
    uint64_t touch;                   /* 0, or which of the directory's touches was its own */
    uint64_t changed, changed_before; /* the directory's, with and without it */
    struct link waiting;
    uint16_t length;
    char name[RECORD_NAME_MAX];
};

int home_create(struct home **);
void home_destroy(struct home *);

/* Directories. home_dir_add finds or makes; NULL: out of memory. */
struct home_dir *home_dir_find(struct home *, struct dirid);
struct home_dir *home_dir_add(struct home *, struct dirid, const char *path);
/* Forgets it; who waits on it is served again. */
void home_dir_drop(struct home *, struct home_dir *);
/* The directory whose mirrors have that name, or NULL. Looks at all: rarely asked. */
struct home_dir *home_dir_of_mirror(struct home *, const char *mirror, size_t length);
int home_dir_set_path(struct home_dir *, const char *path);
/* A directory was renamed: those beneath it have new places. */
void home_dirs_moved(struct home *, const char *from, const char *to);
bool home_dir_is_loaded(const struct home_dir *);
/* Writes its record to the index. */
int home_dir_store(struct shuntd *, struct home_dir *);
/* A name in one of its mirrors comes or goes now: the trunk's times do not show it. */
int home_dir_touch(struct shuntd *, struct home_dir *);
/* It has that time of change (record.changed) again. */
int home_dir_set_changed(struct shuntd *, struct home_dir *, uint64_t changed);
/* All directories, for status and the end. */
void home_dirs_each(struct home *, void (*each)(struct home_dir *, void *), void *context);
/* A directory whose times wait to be written to the trunk since before `quiet` (monotonic), or NULL. */
struct home_dir *home_dir_next_quiet(struct home *, uint64_t quiet);
bool home_has_changed(struct home *);
uint64_t home_dir_count(struct home *);

/* The share of the node with that branch; made if there is none. NULL: out of memory. */
struct home_share *home_share(struct home_dir *, uint16_t branch);
/* How many nodes have touched it. */
uint32_t home_share_count(const struct home_dir *);

/* Leaves. How many names of a node's mirror are in leaf N. */
int home_leaf_count(struct home_share *, uint32_t leaf, int32_t change);
/* The leaf that takes a name, or -EAGAIN: a new one must be made (*fresh is its number) before. */
int home_leaf_pick(struct home_share *, uint64_t hash, uint64_t maker, uint32_t full, uint32_t *leaf,
                   uint32_t *fresh);
/* A leaf was made: it is open now, instead of one that is full, or beside the others. */
int home_leaf_open(struct home_share *, uint32_t leaf, uint32_t full);
/* Another node looks at a file in that leaf: from then on the file system must ask it about the leaf, so its
 * owner goes on in a fresh one, once this one holds a number of names that grows with the number of leaves.
 */
void home_leaf_looked_into(struct home_share *, uint32_t leaf);
/* The mirrors of all nodes are gone. */
void home_leaves_forget(struct home_dir *);

/* Flights. */
struct flight *flight_find(struct home *, struct dirid, const char *name, size_t length);
/* Its own flight if `client` began it, else NULL. */
struct flight *flight_of(struct home *, struct dirid, const char *name, size_t length, uint64_t client);
struct flight *flight_begin(struct shuntd *, enum flight_kind, struct home_dir *, const char *name,
                            size_t length, const struct listen_request *);
/* The flight's directory changes by it; it did not after all: its time is what it was, unless it changed
 * again. */
int flight_touch(struct shuntd *, struct flight *);
int flight_untouch(struct shuntd *, struct flight *);
/* Ends it; who waited is served again, and so is who waited for the directory's last flight. */
void flight_end(struct shuntd *, struct flight *);
/* The first flight whose client is gone (client == that) or has given up waiting for its answer (client ==
 * 0). */
struct flight *flight_of_client(struct shuntd *, uint64_t client);
unsigned flight_count(struct home *);

/* Waiting. home_park copies the request: 0 or -ENOMEM. */
int home_park(struct shuntd *, struct link *waiting, const struct listen_request *);
void home_wake(struct home *, struct link *waiting);
/* The next request to be served again, or NULL; the caller frees it. */
struct home_parked *home_next_woken(struct home *);
