/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* How the processes of a benchmark find the first of them.
 *
 * Those that a launcher has started have one thing in common for sure: the directory that they are to
 * measure. So the first writes into a file there where it listens (TCP) and a random token, and takes the
 * file away when all have come. One that was killed leaves it there: the next one takes it away if the host, boot, process and
 * start time in it are those of a process of this host that has ended, or, of another host, if it is older than a live one
 * gets. Nothing else is written there for talking: all waiting goes over the
 * sockets, since a barrier of files would be work for the very file system that is measured. Linking MPI
 * instead would bind shunt to one of its libraries, and would start it in processes that should be like any
 * program. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/talk.h"
#include "session/session.h"

#define MEET_FILE "shunt-bench.meet"
#define MEET_ADDRESSES_MAX 32
#define MEET_PATIENCE 60 /* seconds */

struct rendezvous {
    int listener;
    char file[PATH_MAX + sizeof MEET_FILE + 1]; /* empty: none is written */
    uint16_t port;
    uint64_t host;
    struct session_member writer; /* its host, boot, pid and start time */
    char token[TALK_TOKEN_SIZE];
    unsigned count;
    uint32_t addresses[MEET_ADDRESSES_MAX]; /* IPv4, as on the network, besides the loopback */
};

/* Listens; for other hosts too if `wide`, and then tells them where in a file in `directory`. 0, or -1 after
 * a complaint. */
int rendezvous_open(struct rendezvous *, const char *directory, bool wide);
/* All have come. */
void rendezvous_hide(struct rendezvous *);
void rendezvous_close(struct rendezvous *);
/* Reads what the first has written. 0; -EAGAIN: nothing yet, or not all of it. */
int rendezvous_read(struct rendezvous *, const char *directory);

/* Does the first listen? It was killed, else. */
bool rendezvous_answers(const struct rendezvous *);
/* A socket on which the hello was said, whose token this fills in, or -errno. */
int rendezvous_connect(const struct rendezvous *, struct talk_hello *);
/* The next one that has come and has the token: its socket, or -EAGAIN: it was a stranger, or nobody. */
int rendezvous_accept(const struct rendezvous *, struct talk_hello *);

/* Two processes with the same number run on one host. */
uint64_t rendezvous_host(void);
