/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The first process of a benchmark: gathers the others and gives them their orders, all at the same time. */

#include <stdbool.h>
#include <sys/types.h>

#include "bench/plan.h"
#include "bench/rendezvous.h"
#include "bench/site.h"
#include "cli/signal_wait.h"

enum conductor_who { CONDUCTOR_ALL = 0, CONDUCTOR_FIRST, CONDUCTOR_LEADERS /* the first of each node */ };

struct conductor_peer {
    int agent, workers[TALK_KINDS]; /* sockets; -1: none */
    uint32_t node, neighbour;
    bool leads; /* is the first of its node */
    bool waits; /* owes an answer */
    char name[TALK_NODE_MAX];
    uint64_t client;
    pid_t child; /* 0: it is not ours */
};

struct conductor {
    const struct plan *plan;
    const char *directory;
    struct rendezvous meet;
    struct signal_wait watch;
    uint32_t count, nodes, clients; /* clients: mounts of the file system */
    struct conductor_peer *peers;   /* by rank */
    struct pollfd *polls;
    int signal;  /* that ends it all; 0 */
    bool failed; /* after a complaint */
};

/* What all have done together. */
struct conducted {
    uint64_t done;
    double seconds;
    struct histogram latency;
};

/* Starts the other processes, or waits for those that a launcher has started. All answer 0, or -1 after a
 * complaint or a signal; then nothing but conductor_finish may be called. */
int conductor_init(struct conductor *, const struct plan *, const char *directory);
/* Tells all where it is; starts daemons if that is wanted, and workers. */
int conductor_prepare(struct conductor *, const struct site *);
/* One order, with the owner of the files filled in, and all answers to it; `conducted` may be NULL.
 *
 * The seconds are those between the first begin and the last end. Clocks of different hosts are not
 * compared for that: the end of each is told by when its answer came, counted back from there. */
int conductor_ask(struct conductor *, enum talk_kind, enum conductor_who, const struct talk_order *, struct conducted *);
/* Ends workers and daemons. */
int conductor_end(struct conductor *);
void conductor_finish(struct conductor *);
