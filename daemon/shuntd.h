/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The daemon's state: one struct, passed first. One thread (main's) decides everything and alone touches what
 * is here and the index; the threads of disk/ work on jobs of their own and hand them back; the thread of
 * listen/ that waits for the end of clients hands over process ids.
 *
 * Functions answer 0, a positive answer that their header names, or -errno, which is fatal and goes up to
 * main. */

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "base/list.h"
#include "index/index.h"
#include "session/session.h"
#include "union/listing.h"

struct disk;
struct peers;
struct relay;
struct home;
struct listen;
struct serve_queue;

struct shuntd_options {
    char root[PATH_MAX];
    char node[LAYOUT_NODE_MAX + 1];
    const char *run_base;
    enum config_placement placement;
    uint32_t leaf_full;
    bool takeover; /* of a session of other hosts that do not beat */
    uint64_t stale;
    const char *fabric;
    bool foreground;
};

struct shuntd_counts {
    uint64_t requests;   /* messages taken from clients */
    uint64_t batches;    /* index transactions */
    uint64_t malformed;  /* messages dropped */
    uint64_t births;     /* names reserved */
    uint64_t redirected; /* ... in this node's branch */
    uint64_t removals, renames, loads, parked, deaths;
};

struct shuntd {
    struct shuntd_options options;
    struct union_root root;
    struct session session;   /* as of the last epoch that this daemon made or read */
    struct session_member me; /* ... in it; number 0: not yet */
    uint64_t keyed;           /* the session whose key it has, 0: none */
    uint8_t key[SESSION_KEY_SIZE];
    uint64_t silent; /* the epoch that may be taken over from other hosts, 0: none */
    char run_dir[SESSION_RUN_MAX];
    char branch_path[PATH_MAX + 96]; /* ROOT/.shunt/b/NODE.N */
    uint16_t branch;                 /* its number */
    uint16_t *branch_of; /* the branches of the other members, by the members' numbers; 0: not known */
    struct index *index;
    struct listen *listen;
    struct disk *disk;
    struct home *home;
    struct serve_queue *queue; /* answers that wait for the commit */
    struct peers *peers;
    pthread_t opening; /* the fabric, where `opens` */
    bool opens;
    struct relay *relay;
    struct link far_leaves; /* that other daemons are asked to make */
    uint16_t home_member;   /* of the one that is home of the names */
    struct shuntd_counts counts;
    volatile int stop; /* how often a signal asked for the end */
};
