/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The daemon's state: one struct, passed first.
 *
 * Whichever thread holds the turn (main.c: main's thread, or the fabric's while main's sleeps) serves, and it alone touches
 * what is here and the index; other contracts call it main's thread. The threads of disk/ and of heartbeats work on jobs of
 * their own and hand them back; the thread of listen/ that waits for the end of clients hands over process ids; the thread that
 * opens the fabric ends before anything is taken down. A signal handler writes `stop` and rings the channel's doorbell, nothing
 * else.
 *
 * Functions answer 0, a positive answer that their header names, or -errno, which is fatal and goes up to main. */

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "base/list.h"
#include "home/route.h"
#include "index/index.h"
#include "session/session.h"
#include "union/listing.h"

struct disk;
struct peers;
struct home;
struct listen;
struct answer_queue;
struct prefetch;
struct grants;
struct failure_detector;
struct remote_stall;
struct rpc_handlers;
struct collective_handlers;
struct home_rpc_handlers;
struct coordinator_handlers;
struct prefetch_handlers;
struct membership_handlers;
struct recorder;

#define SHUNTD_AGAIN 75         /* the status of one that is to be started again: --again */
#define SHUNTD_NO_MORE SIGRTMIN /* to its supervisor: this daemon ends, and is the last one */

struct shuntd_options {
    char root[PATH_MAX];
    char node[LAYOUT_NODE_MAX + 1];
    const char *job; /* of a batch system, of which this daemon is a part; empty: of none */
    const char *run_base;
    uint64_t catalogue_quiet;   /* ns */
    const char *catalogue_base; /* NULL: the catalogue is in the run directory */
    enum config_placement placement;
    uint32_t leaf_full;
    uint64_t index_limit; /* bytes; 0: there is none */
    uint64_t stale;
    uint64_t deadline; /* ns; for which a silent member is waited for */
    const char *fabric;
    bool foreground;
    bool logs_to_syslog;
    char log_dir[PATH_MAX]; /* for a log that is kept; empty: none is */
    bool again;             /* what may pass is left to the tool that started it, as SHUNTD_AGAIN */
};

struct shuntd_counts {
    uint64_t requests;   /* messages taken from clients */
    uint64_t batches;    /* of requests, answered together */
    uint64_t malformed;  /* messages dropped */
    uint64_t creates;    /* names reserved */
    uint64_t redirected; /* ... in this node's branch */
    uint64_t prefetched; /* creates and unlinks, and names of renames, that were prefetched (prefetch/prefetch.h) */
    uint64_t unlinks, renames, loads, blocked, client_exits;
    uint64_t waited;          /* ns for which blocked requests waited */
    uint64_t evictions;       /* directories that were forgotten, of which this daemon was the coordinator */
    uint64_t returns;         /* ... and were loaded again since */
    uint64_t oversized;       /* loads of directories that alone are above the limit of the index */
    uint64_t remote_requests; /* questions about names that other nodes asked this home */
    /* Branches in which a mirror was looked for, to load a directory: of this node; of nodes that are no members; of other
     * members, as their coordinator. */
    uint64_t mirrors_own, mirrors_absent, mirrors_others;
    uint64_t max_hops; /* messages on the longest way of a collective that was begun here */
};

struct shuntd {
    /* What lower rooms have for higher ones (rooms.h); each room declares its own table. */
    const struct rpc_handlers *rpc_handlers;
    const struct collective_handlers *collective_handlers;
    const struct home_rpc_handlers *home_rpc_handlers;
    const struct coordinator_handlers *coordinator_handlers;
    const struct prefetch_handlers *prefetch_handlers;
    const struct membership_handlers *membership_handlers;
    struct shuntd_options options;
    struct union_root root;
    struct session session;             /* as of the last epoch that this daemon made or read */
    uint8_t parts[SESSION_MEMBERS_MAX]; /* ... what its members were in it, until that epoch is followed */
    struct session_member me;           /* ... in it; number 0: not yet */
    uint64_t key_session;               /* the session whose key it has, 0: none */
    uint8_t key[SESSION_KEY_SIZE];
    uint32_t next_seen; /* session.next when branches were looked for last */
    char run_dir[SESSION_RUN_MAX];
    pid_t supervisor;                /* 0: nobody starts another daemon if this one crashes */
    char branch_path[PATH_MAX + 96]; /* ROOT/.shunt/b/NODE.N */
    uint16_t branch;                 /* its number */
    uint16_t *branch_of;             /* the branches of the other members, by the members' numbers; 0: not known */
    struct index *index;
    struct listen *listen;
    struct disk *disk;
    struct stall_watch *stall_watch; /* of the disk's jobs, and of main's thread (disk/stall_watch.h) */
    struct home *home;
    struct dir_times_job *flushing, *to_flush; /* directories whose times the file system is to write down */
    struct answer_queue *answers;              /* answers that go out together */
    struct prefetch *prefetch;                 /* streams of names that can be predicted (prefetch/prefetch.h) */
    struct grants *grants;                     /* what they were granted of them (prefetch/grant.h) */
    struct peers *peers;
    pthread_t fabric_thread; /* the fabric, where `opens` */
    bool fabric_opens;
    struct route route;
    uint64_t now;                               /* monotonic, when this batch began: for what is due */
    bool (*serve_frames)(struct shuntd *);      /* frames came, says another thread: true, main need not know; NULL: not yet */
    bool is_welcome;                            /* a home knows that this daemon has joined */
    bool checking, moved;                       /* a move of shards: all are asked whether they are done; they are */
    uint32_t checked;                           /* ... in which epoch */
    struct link deferred_items;                 /* items about shards that are on their way here */
    struct link checks;                         /* collectives that wait until this daemon has done its part of a move */
    struct link collectives, coordinator_calls; /* collectives, and questions to coordinators, that are under way */
    struct link blocked_lists;                  /* listings that wait, since a home is gone */
    struct link rename_fences;                  /* directories that are being renamed, anywhere (coordinator/rename_fence.h) */
    struct link own_fences;                     /* ... by this daemon, as far as others may not know that they have ended */
    struct link awaiting_fences;                /* collectives that wait for that */
    struct link new_dirs;                       /* of which coordinators are being told (coordinator/new_dirs.h) */
    uint64_t last_collective, last_coordinator_call;
    uint64_t outnumbered;   /* the highest number by which a directory was decided about that was evicted */
    struct link unrecorded; /* directories that were evicted since the recorder looked (coordinator/evict.h) */
    unsigned unrecorded_count;
    unsigned evict_questions;   /* that are not answered */
    uint64_t outgrown_next;     /* bytes of the index from which on a directory is looked for that is too large for it */
    uint32_t evicted[1u << 16]; /* by a hash of their identity: directories that were (coordinator/evict.c) */
    unsigned trunk_jobs;        /* coordinator_begin_job: that are under way */
    unsigned outdated_jobs;     /* ... since before all began again */
    bool owes_end;              /* and homes are not told yet that this was all that is held here (membership/recovery.h) */
    struct shuntd_counts counts;
    struct recorder *recorder;         /* of the catalogue (recorder/recorder.h) */
    struct disk *heartbeat_disk;       /* for heartbeats, and looks at those of others: nothing else delays them */
    bool heartbeat_under_way;          /* one is under way (membership/heartbeat.h) */
    uint64_t next_heartbeat;           /* monotonic */
    uint64_t stalled;                  /* monotonic, when the file system was last seen to hold something up; 0: never */
    struct remote_stall *remote_stall; /* ... at another node (membership/remote_stall.h) */
    int heartbeat_failed;              /* how the last one did, 0: it did not */
    int write_failed, read_failed;     /* how the session's last epoch was written and read, 0: it was */
    uint64_t next_write;               /* monotonic: where it was not written, when that is tried again */
    uint64_t joined;                   /* clock_boot, before the heartbeat that came with it */
    bool cut_off;                      /* the session has gone on without this daemon: it may decide nothing any more */
    struct failure_detector *failure_detector; /* of others' heartbeats (membership/failure_detector.h) */
    uint64_t root_looked;       /* when it was looked whether the root is where it was (membership/root_watch.h), monotonic */
    bool root_looks;            /* ... it is being looked */
    unsigned root_missing;      /* how often in a row it was not */
    bool root_gone;             /* it is not: nothing is left to serve, and nothing at its path is this daemon's */
    const char *former_run_dir; /* of the daemon that crashed before this one; NULL: this is the first one */
    volatile int stop;          /* how often a signal asked for the end */
};

/* The branch of a member's node, 0: not known. */
static inline uint16_t shuntd_branch(const struct shuntd *shuntd, uint16_t member)
{
    return member == shuntd->me.number ? shuntd->branch : shuntd->branch_of[member];
}
/* What must be before anything is served. */
static inline void shuntd_init(struct shuntd *shuntd)
{
    list_init(&shuntd->deferred_items);
    list_init(&shuntd->checks);
    list_init(&shuntd->collectives);
    list_init(&shuntd->coordinator_calls);
    list_init(&shuntd->blocked_lists);
    list_init(&shuntd->rename_fences);
    list_init(&shuntd->own_fences);
    list_init(&shuntd->awaiting_fences);
    list_init(&shuntd->new_dirs);
    list_init(&shuntd->unrecorded);
}
