/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The channel between the processes of a node and its daemon: one file of shared memory, `channel` in the run
 * directory.
 *
 * It is cut into queue pairs. A queue pair belongs to one process at a time; a thread takes one of its process's queue pairs
 * for a request and gives it back with the answer, so that no lock is shared and nobody queues after another
 * thread (the plan of blk-mq: many queues). On a queue pair there is a ring of messages on the way to the daemon
 * and room for one answer. Some messages want no answer: they lie in the ring until the daemon next looks,
 * unless somebody waits for what they say.
 *
 * Next to the queue pairs lie a few bulk buffers, for answers that are too long for a queue pair: a page of names is worth more
 * the longer it is, since each costs a round through all daemons. The daemon takes a bulk buffer for an answer, and the client
 * that was answered gives it back as soon as the answer was read, so that few do for all; where there is none, the page is a
 * short one.
 *
 * A waiting side spins before it sleeps, if that has paid lately (base/adaptive_spin.h): with one process and a daemon
 * on a core each nobody sleeps or is woken. Only sleepers are woken: the daemon sleeps on `doorbell` after it
 * has raised `asleep`; a client says in its queue pair's `reply` that it sleeps, and sleeps on the word of its row of queue
 * pairs, so that one call wakes several in a row (daemon/listen/wakeups.h). A client on the daemon's own processor does not
 * spin: the daemon cannot answer meanwhile.
 *
 * A question and its answer take as long as the few cache lines that go from one core to another, each up to a quarter of a
 * microsecond. So a side writes to the other's lines only where that is the message: the bit of its queue pair and what lies in
 * the queue pair, there; the answer with its `reply`, back.
 *
 * That the daemon lives is read from `life`, the word of a robust mutex that it holds for its whole life: the kernel marks it
 * when the daemon is gone, however it went.
 *
 * A daemon that crashed may have let processes begin what its successor knows nothing of. So the successor, before it
 * looks at anything, waits until no queue pair of the old channel is `holding`, but for those of processes that are gone: from
 * then on what they did is on disk.
 *
 * Nor may a process go by what it was told for longer than the daemon's lease: then other nodes may have gone on without
 * this one. It looks at the clock after it has read what it goes by, and before it changes anything. In another time namespace
 * it asks the daemon, by a PING, how far its clock is from the daemon's.
 *
 * A thread that makes, removes or renames names one after the other is granted the next ones before it asks
 * (daemon/prefetch/grant.h): a few grants lie in its queue pair, each the answer that it would get. It takes one by
 * compare-and-swap, goes on as if it had asked, and says there, too, how it went, so that for such a name there is no message
 * at all. What it makes and then renames each time, a checkpoint, is one grant, which it takes again for the rename. The daemon
 * takes it back likewise, if somebody else is to have the name: the first swap decides. What has become of grants the daemon
 * sees when it next looks at the queue pair, or when it is asked about that name.
 *
 * Most of the file has no memory at first: a root with nothing in it takes little. A page that a full tmpfs has no room for
 * would be a SIGBUS, in an application, so nothing is loaded or stored there before its pages were made (sys_populate): a queue
 * pair's by the first process that takes it, which says so in `there`; a bulk buffer's by the daemon; those of the location
 * hints by the first process that has one to remember. Where there is no room, it is an error, a short page, and fewer hints.
 * What was made stays, and a process takes a queue pair that is there before it makes one. Code that scans all queue pairs
 * looks at those that are there.
 *
 * Everything a side reads from the other's memory is copied before it is checked; but for a bulk buffer's text, of which each
 * number is copied, and which is read within its bounds whatever becomes of it meanwhile (wire/page.h). */

#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"
#include "wire/page.h"

#define CHANNEL_MAGIC 0x6e6168632d746e73ull /* "snt-chan" */
#define CHANNEL_VERSION 27
#define CHANNEL_QPS 2048
#define CHANNEL_ROW 32       /* queue pairs in a row: a bit each */
#define CHANNEL_QPS_FIRST 32 /* whose memory is there from the begin on */
#define CHANNEL_SLOTS 8
#define CHANNEL_USUAL 128 /* bytes that messages and answers take as a rule */
#define CHANNEL_GRANTS 32
#define CHANNEL_GRANT_NAME 64
#define CHANNEL_GRANT_PLACE 254
#define CHANNEL_TRUNK_TIMES 1024        /* whose memory is there from the begin on */
#define CHANNEL_LOCATION_HINTS 8192     /* a power of two */
#define CHANNEL_LOCATION_HINTS_FIRST 16 /* likewise; whose memory is there from the begin on */
#define CHANNEL_BULKS 16
#define CHANNEL_PLACES ((uint64_t)1 << 32)

#define CHANNEL_FOR_EVER UINT64_MAX

/* What the daemon is to be woken for. */
enum channel_sleep { CHANNEL_AWAKE = 0, CHANNEL_FOR_REQUESTS, CHANNEL_FOR_ALL };

/* What has become of a queue pair's last request is one word, so that both sides change it at once: the tag of the one that was
 * answered last; its client may add that it is about to sleep, and put there the tag of the request that it waits for no
 * longer. The daemon's answer puts its tag there, and finds what the client had said. */
enum channel_reply { CHANNEL_SLEEPS = 1, CHANNEL_GAVE_UP = 2 };
#define CHANNEL_REPLY_BITS 2
#define CHANNEL_TAG_MAX (UINT32_MAX >> CHANNEL_REPLY_BITS)
#define CHANNEL_ANSWERED(TAG) ((uint32_t)(TAG) << CHANNEL_REPLY_BITS)

struct channel_slot {
    uint32_t size;
    uint8_t bytes[MESSAGE_SHORT];
};

/* What a grant is: the low bits of its word. Above them stands a number that each grant in a slot has another of, so that
 * no process takes one that it has not read. */
enum channel_granted {
    CHANNEL_NOTHING = 0, /* the daemon's to fill */
    CHANNEL_GRANTED,     /* either's: its process takes it (CHANNEL_TAKEN), or the daemon does (CHANNEL_NOTHING) */
    CHANNEL_TAKEN,       /* its process's */
    CHANNEL_DONE,   /* ... which has said how it went: the daemon's again, or, of a name that it may rename then, either's */
    CHANNEL_MOVING, /* what was made is being renamed: its process's */
    CHANNEL_MOVED,  /* ... and has the other name: the daemon's again */
};
#define CHANNEL_GRANT_BITS 3
#define CHANNEL_GRANT_STATE(WORD) ((enum channel_granted)((WORD) & ((1u << CHANNEL_GRANT_BITS) - 1)))

/* A name that the process may make or remove, or one that it may rename to another one of the same directory, as if it had
 * asked; or one that it may make and then rename, if that is what it does each time: a checkpoint. Names that are longer are
 * not granted. */
struct channel_grant {
    uint64_t word;
    struct dirid dir;
    struct record_entry entry; /* the answer's; a file that is renamed stays in its leaf, so it is that of both names */
    uint64_t taken_at;         /* clock_files of its process, just before it was taken, the last time */
    uint64_t made;             /* the inode number of what was made, once it is done */
    uint16_t type;  /* MESSAGE_CREATE (of a regular file), MESSAGE_UNLINK or MESSAGE_RENAME (which replaces nothing) */
    uint16_t calls; /* the daemon is to be woken when this one is done: it has more to grant then */
    uint16_t name_length, to_length;
    char name[CHANNEL_GRANT_NAME]; /* behind it the new one, if there is one */
} __attribute__((aligned(128)));

/* 128 bytes between what the two sides write, so that they do not take each other's cache lines. */
struct channel_qp {
    uint32_t owner;   /* a process id, or 0: taken with compare-and-swap, given back by the daemon alone */
    uint32_t written; /* messages put in so far; the client's */
    uint32_t emptied; /* messages taken out when the client last looked */
    uint32_t holding; /* how many of its owner's threads may change the file system on the strength of an answer, or wait
                       * for one that lets them: raised before the question, lowered after the notice of how it went */
    uint8_t apart_1[112];
    uint32_t taken;  /* messages taken out so far; the daemon's */
    uint32_t grants; /* how many slots for grants are in use: none need be looked at if there is none */
    uint8_t apart_2[120];
    struct channel_grant grant[CHANNEL_GRANTS];
    uint16_t place_length;
    char place[CHANNEL_GRANT_PLACE]; /* of all grants: BRANCH/MIRROR/, after which comes the entry's leaf */
    struct channel_slot slots[CHANNEL_SLOTS];
    char text[MESSAGE_TEXT_MAX + 1];              /* of the one request on its way that has a text */
    uint32_t reply __attribute__((aligned(128))); /* see above */
    uint32_t answer_size;
    uint8_t answer[MESSAGE_SHORT + 2048];
} __attribute__((aligned(4096)));

/* Where a name was seen that has its home elsewhere, by its hash: the processes' own affair (names/location_hint.c). */
struct channel_location_hint {
    uint8_t bytes[192];
};

/* What times the trunk's directory had when its names were read: likewise (names/trunk_times.c). */
struct channel_trunk_times {
    uint8_t bytes[32];
};

/* For one long answer. */
struct channel_bulk {
    uint32_t owner; /* the process that is answered, 0: free. Taken by the daemon alone, given back by either */
    uint32_t size;  /* what is used of the text */
    char text[PAGE_MAX];
} __attribute__((aligned(4096)));

#define CHANNEL_BOOT 40 /* of a boot id, ended by a zero */

struct channel {
    uint64_t magic;
    uint32_t version;
    uint32_t qps; /* CHANNEL_QPS of the version that made it */
    uint64_t session;
    struct dirid root;
    int32_t supervisor;                 /* the process that starts another one when it crashes; 0: nobody does */
    uint64_t pid_namespace;             /* its inode number: process ids mean something only within one */
    uint64_t time_namespace;            /* likewise: clocks of another one are not the daemon's (request/lease_clock.h) */
    uint32_t redirected;                /* 1 once a directory may have times that its trunk does not show */
    uint16_t branch;                    /* this node's, as its index numbers it */
    uint8_t far;                        /* 1: the file system asks a server for each part of a path */
    uint8_t keeps_names;                /* 1: it may keep a name after another node of the session has changed it */
    uint32_t sole;                      /* 1 while all bits of homes are set */
    uint64_t homes[RECORD_SHARDS / 64]; /* a bit for each shard whose names are all in this node's index */
    uint64_t lease;       /* until then (the daemon's CLOCK_BOOTTIME, ns) this node is of the session, CHANNEL_FOR_EVER before
                           * it serves */
    uint32_t stalls;      /* raised every few seconds, or more often, while the file system holds up what the daemon does */
    uint64_t clock;       /* the daemon's CLOCK_BOOTTIME when it last answered a PING */
    uint32_t gains;       /* raised before a bit of homes is set: what was looked up before that says nothing */
    uint32_t granting;    /* how many queue pairs have grants: what was done by those the daemon may not have seen yet */
    uint32_t losses;      /* raised when a bit was cleared, before the names leave the index */
    uint32_t hints;       /* how many location hints are there, less one: CHANNEL_LOCATION_HINTS, or the first */
    uint64_t places;      /* how many renames of directories are under way in the session, and from CHANNEL_PLACES on, how often
                           * one had another place or let others through: for what a node's kernel keeps of paths (NFS) */
    pthread_mutex_t life; /* robust, shared, held by the daemon */
    char boot[CHANNEL_BOOT]; /* the machine's boot id; empty: it cannot be told. After another boot, where the run directory is
                              * on a disk, nobody has unlocked `life` */
    uint8_t apart_1[128 - CHANNEL_BOOT];
    uint32_t doorbell;  /* raised and woken for a sleeping daemon; a futex */
    uint32_t asleep;    /* the daemon is about to wait on it; an enum channel_sleep */
    uint32_t processor; /* on which the daemon is, as it last saw */
    uint8_t apart_2[116];
    uint32_t answers[CHANNEL_QPS / CHANNEL_ROW]; /* raised and woken when queue pairs of a row are answered; futexes */
    uint8_t apart_3[128];
    /* A bit for each queue pair in which something came that the daemon is to look at now, or that can wait until it does. */
    uint64_t asked[CHANNEL_QPS / 64] __attribute__((aligned(64)));
    uint64_t told[CHANNEL_QPS / 64];
    uint64_t there[CHANNEL_QPS / 64]; /* a bit for each whose memory is there; set when that is made, and never cleared */
    struct channel_trunk_times trunk_times[CHANNEL_TRUNK_TIMES];
    struct channel_location_hint location_hints[CHANNEL_LOCATION_HINTS] __attribute__((aligned(4096)));
    struct channel_bulk bulks[CHANNEL_BULKS];
    struct channel_qp qp[] __attribute__((aligned(4096)));
};

_Static_assert(sizeof(struct channel_qp) == 16384, "what a queue pair takes is known");
#define CHANNEL_SIZE (sizeof(struct channel) + CHANNEL_QPS * sizeof(struct channel_qp))

_Static_assert(CHANNEL_QPS_FIRST < 64, "they are in the first word of `there`");
_Static_assert(CHANNEL_LOCATION_HINTS_FIRST * sizeof(struct channel_location_hint) <= 4096, "they are in one page");

/* May it be looked at? */
static inline bool channel_qp_is_there(const struct channel *channel, unsigned number)
{
    return (__atomic_load_n(&channel->there[number / 64], __ATOMIC_ACQUIRE) >> number % 64 & 1) != 0;
}

/* Is it a channel, and of this version? */
static inline bool channel_is_known(const struct channel *channel)
{
    return channel->magic == CHANNEL_MAGIC && channel->version == CHANNEL_VERSION && channel->qps == CHANNEL_QPS;
}

/* Is the daemon there? glibc keeps the futex word of a mutex first (it is its ABI); the kernel sets
 * FUTEX_OWNER_DIED in a robust one when its owner ends, and a daemon that ends on purpose unlocks it. */
static inline bool channel_is_alive(const struct channel *channel)
{
    uint32_t word = __atomic_load_n((const uint32_t *)&channel->life.__data.__lock, __ATOMIC_ACQUIRE);
    return word != 0 && (word & FUTEX_OWNER_DIED) == 0;
}

/* Its process, 0: it is not there. */
static inline pid_t channel_daemon(const struct channel *channel)
{
    uint32_t word = __atomic_load_n((const uint32_t *)&channel->life.__data.__lock, __ATOMIC_ACQUIRE);
    return (word & FUTEX_OWNER_DIED) == 0 ? (pid_t)(word & FUTEX_TID_MASK) : 0;
}

/* It ended, and not on purpose. */
static inline bool channel_has_crashed(const struct channel *channel)
{
    uint32_t word = __atomic_load_n((const uint32_t *)&channel->life.__data.__lock, __ATOMIC_ACQUIRE);
    return (word & FUTEX_OWNER_DIED) != 0;
}
