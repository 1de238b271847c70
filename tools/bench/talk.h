/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the conductor and the processes of a benchmark say to each other: orders and answers of fixed sizes
 * over stream sockets. All are of one build and one kind of machine: the greeting ensures it. */

#include <stddef.h>
#include <stdint.h>

#include "bench/histogram.h"

#define TALK_MAGIC "shunt bench " SHUNT_VERSION " 2"
#define TALK_NODE_MAX 64
#define TALK_TOKEN_SIZE 33 /* terminated */
#define TALK_WORDS_MAX 256

enum talk_kind { TALK_AGENT = 0, TALK_NATIVE, TALK_SHIMMED, TALK_KINDS };

struct talk_hello {
    char magic[32];
    char token[TALK_TOKEN_SIZE];
    char node[TALK_NODE_MAX];
    uint32_t kind, rank, count;
    uint64_t client; /* tells mounts apart: a hash of the host and of the directory's device */
};

enum talk_what {
    TALK_BEGIN = 0, /* to an agent: `name` is the directory, `nodes` are so many */
    TALK_SERVE,     /* start the daemon of your node */
    TALK_WORKERS,   /* start a worker of `kind` */
    TALK_END,       /* stop the daemon if you have one, and end */
    TALK_MAKE,      /* to a worker: the directory of this pass */
    TALK_MAKE_OWN,  /* ... and in it the one of this process */
    TALK_WORK,
    TALK_REMOVE_OWN,
    TALK_REMOVE,
};

struct talk_order {
    uint32_t what, kind, configuration, operation;
    uint32_t pass;    /* a number of its own, for new names */
    uint32_t owner;   /* whose files, by rank */
    uint32_t renamed; /* they have their second names */
    uint32_t nodes;
    uint64_t files, size;
    char name[32];
};

struct talk_answer {
    int32_t error;              /* 0, or -errno */
    int32_t signal;             /* no answer: an agent got this signal */
    uint64_t done, elapsed;     /* operations; ns */
    char words[TALK_WORDS_MAX]; /* with an error: of what, for people; empty: it was told */
    struct histogram latency;
};

/* The whole of it: 0 or -errno; -ECONNRESET: the other side has closed. */
int talk_send(int fd, const void *, size_t size);
int talk_receive(int fd, void *, size_t size);
