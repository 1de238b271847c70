/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* What the environment says, read once; the only reader of it.
 *
 *     SHUNT_ROOT       the roots, separated by `:`
 *     SHUNT_ROOT_ID    what those are, as the commands set it (names/origin.h)
 *     SHUNT_NODE       the name of this node (default: SLURMD_NODENAME, or the host's name up to its first dot)
 *     SHUNT_JOB        the job of a batch system that this is a part of, as the commands set it (lib/session/SESSION.md)
 *     SHUNT_PLACEMENT  auto or branch, for a daemon that is started
 *     SHUNT_LEAF_FULL  how many names a leaf takes, for a daemon that is started
 *     SHUNT_SERVED     set by `shunt exec` and `run` for their command: a root that is exported after it is plain for it
 *     SHUNT_RUN_DIR    where node-local files go (default /dev/shm)
 *     SHUNT_STATIC     serve, warn or refuse: programs that the shim cannot be loaded into (default serve)
 *     SHUNT_STATIC_HELPER  the program that serves those, as the commands set it
 *     SHUNT_DEADLINE   seconds that a request may take (default 30: longer than a node that vanished is waited for)
 *     SHUNT_FABRIC     how daemons reach each other, or none (default tcp)
 *     SHUNT_INDEX_LIMIT  bytes of memory for the names of directories in use, for a daemon that is started
 *     SHUNT_STALE      seconds without a heartbeat after which a node counts as gone (default 15); a lease
 *
 * The texts point into the environment block as it was handed in; a bad value is the default and named in
 * `bad`. Allocates nothing; async-signal-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_INDEX_LEAST (1ull << 20)
#define CONFIG_JOB_MAX 192
#define CONFIG_FABRIC "tcp" /* where none is set */

enum config_placement { CONFIG_AUTO = 0, CONFIG_BRANCH };
enum config_static { CONFIG_STATIC_WARN = 0, CONFIG_STATIC_SERVE, CONFIG_STATIC_REFUSE };

struct config {
    const char *roots;          /* NULL or empty: none */
    const char *root_ids;       /* empty: not known */
    const char *node;           /* NULL: Slurm's or the host's name */
    const char *slurm_node;     /* Slurm's name of the node, where it started this process or one before it; NULL */
    const char *job;            /* empty: none; a word, shorter than CONFIG_JOB_MAX */
    uint64_t catalogue_quiet;   /* ns without a change after which the daemon writes the catalogue */
    const char *catalogue_base; /* NULL: where the run directory is */
    const char *run_base;
    const char *preload; /* LD_PRELOAD */
    bool served;         /* SHUNT_SERVED: the roots were served when the command began whose child this is */
    enum config_placement placement;
    enum config_static statics;
    const char *static_text;   /* of that, as it is set; empty: it is not */
    const char *static_helper; /* NULL: none is known */
    uint32_t leaf_full;        /* 0: the file system's default */
    uint64_t index_limit;      /* bytes; 0: a part of the run directory */
    uint64_t deadline;         /* ns */
    uint64_t stale;            /* ns */
    const char *fabric;        /* as fabric_open's setting, or none */
    const char *bad;           /* the first variable whose value makes no sense, or NULL */
};

void config_read(struct config *, char *const environment[]);

/* A program may write over its environment block (setproctitle): what is to outlive that has the texts moved to `room`, which
 * takes config_texts_size bytes. */
size_t config_texts_size(struct config *);
void config_move_texts(struct config *, char *room);

/* One variable, or `otherwise` if it is not there or empty. */
const char *config_value(char *const environment[], const char *name, const char *otherwise);

/* auto or branch: 0, else -EINVAL. */
int config_placement_parse(const char *text, enum config_placement *);
/* serve, warn or refuse: 0, else -EINVAL. */
int config_static_parse(const char *text, enum config_static *);
/* A whole number from 1 to `most`: 0, else -EINVAL. */
int config_number_parse(const char *text, uint64_t most, uint64_t *);
/* Bytes: such a number, perhaps with K, M, G or T after it (1024 to the power of 1 to 4, in capital letters or small ones),
 * from `least` on. 0, else -EINVAL. */
int config_size_parse(const char *text, uint64_t least, uint64_t *);
