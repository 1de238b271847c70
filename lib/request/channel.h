/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The road between the processes of a node and its daemon: one file of shared memory, `road` in the run
 * directory.
 *
 * It is cut into lanes. A lane belongs to one process at a time; a thread takes one of its process's lanes
 * for a request and gives it back with the answer, so that no lock is shared and nobody queues behind another
 * thread (the plan of blk-mq: many queues). On a lane there is a ring of messages on the way to the daemon
 * and room for one answer. Some messages want no answer: they lie in the ring until the daemon next looks,
 * unless somebody waits for what they say.
 *
 * Beside the lanes lie a few bays, for answers that are too long for a lane: a page of names is worth more the longer
 * it is, since each costs a round through all daemons. The daemon takes a bay for an answer, and who was answered gives
 * it back as soon as the answer was read, so that few do for all; where there is none, the page is a short one.
 *
 * Who waits looks for a moment before he sleeps, if that has paid lately (base/adaptive_spin.h): with one process and a daemon on
 * a core each nobody sleeps or is woken. Who sleeps is woken, who does not is not: the daemon sleeps on `bell` after it has
 * raised `asleep`; a client says in its lane's `reply` that it sleeps, and sleeps on the word of its row of lanes, so that one
 * call wakes several in a row (daemon/listen/wakeups.h). Who is on the daemon's own processor does not look: the daemon
 * cannot answer meanwhile.
 *
 * A question and its answer take as long as the few cache lines that go from one core to another, each up to a quarter of a
 * microsecond. So a side writes to the other's lines only where that is the message: the bit of its lane and what lies in
 * the lane, there; the answer with its `reply`, back.
 *
 * That the daemon lives is read from `life`, the word of a robust mutex that it holds for its whole life: the kernel marks it
 * when the daemon is gone, however it went.
 *
 * A daemon that crashed may have let processes begin what its successor knows nothing of. So the successor, before it
 * looks at anything, waits until no lane of the old road is `holding`, but for those of processes that are gone: from
 * then on what they did is on disk.
 *
 * Nor may a process go by what it was told for longer than the daemon's lease: then other nodes may have gone on without
 * this one. It looks at the clock after it has read what it goes by, and before it changes anything.
 *
 * Who makes or removes names one after the other is offered the next ones before he asks (daemon/prefetch/grant.h): a few offers
 * lie in his lane, each the answer that he would get. He takes one by compare-and-swap, goes on as if he had asked, and says
 * there, too, how it went, so that for such a name there is no message at all. The daemon takes it back likewise, if somebody
 * else is to have the name: whoever swaps first has decided. What has become of offers the daemon sees when it next looks at
 * the lane, or when it is asked about that name.
 *
 * Everything a side reads from the other's memory is copied before it is checked; but for a bay's text, of which each
 * number is copied, and which is read within its bounds whatever becomes of it meanwhile (wire/page.h). */

#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"
#include "wire/page.h"

#define ROAD_MAGIC 0x64616f722d746e73ull /* "snt-road" */
#define ROAD_VERSION 17
#define ROAD_LANES 2048
#define ROAD_ROW 32 /* lanes in a row: a bit each */
#define ROAD_SLOTS 8
#define ROAD_USUAL (MESSAGE_FIXED + 64) /* bytes that messages and answers take as a rule */
#define ROAD_OFFERS 32
#define ROAD_OFFER_NAME 64
#define ROAD_OFFER_PLACE 254
#define ROAD_SIGHTINGS 8192 /* a power of two */
#define ROAD_BAYS 16
#define ROAD_PLACES ((uint64_t)1 << 32)

#define ROAD_FOR_EVER UINT64_MAX

/* What the daemon is to be woken for. */
enum road_sleep { ROAD_AWAKE = 0, ROAD_FOR_REQUESTS, ROAD_FOR_ALL };

/* What has become of a lane's last request is one word, so that both sides change it at once: the tag of the one that was
 * answered last; its client may add that it is about to sleep, and put there the tag of the request that it waits for no
 * longer. The daemon's answer puts its tag there, and finds what the client had said. */
enum road_reply { ROAD_SLEEPS = 1, ROAD_GAVE_UP = 2 };
#define ROAD_REPLY_BITS 2
#define ROAD_TAG_MAX (UINT32_MAX >> ROAD_REPLY_BITS)
#define ROAD_ANSWERED(TAG) ((uint32_t)(TAG) << ROAD_REPLY_BITS)

struct road_slot {
    uint32_t size;
    uint8_t bytes[MESSAGE_SHORT];
};

/* What an offer is: the low bits of its word. Above them stands a number that each offer in a slot has another of, so that
 * nobody takes one that he has not read. */
enum road_offered {
    ROAD_NOTHING = 0, /* the daemon's to fill */
    ROAD_OFFERED,     /* anybody's: its process takes it (ROAD_TAKEN), or the daemon does (ROAD_NOTHING) */
    ROAD_TAKEN,       /* its process's */
    ROAD_DONE,        /* ... which has said how it went: the daemon's again */
};
#define ROAD_OFFER_BITS 3
#define ROAD_OFFER_STATE(WORD) ((enum road_offered)((WORD) & ((1u << ROAD_OFFER_BITS) - 1)))

/* A name that the process may make or remove, as if it had asked; names that are longer are not offered. */
struct road_offer {
    uint64_t word;
    struct dirid dir;
    struct record_entry entry; /* the answer's */
    uint64_t taken_at;         /* clock_files of its process, just before it was taken */
    uint64_t made;             /* the inode number of what was made, once it is done */
    uint16_t type;             /* MESSAGE_RESERVE (of a regular file) or MESSAGE_REMOVE */
    uint16_t calls;            /* the daemon is to be woken when this one is done: it has more to offer then */
    uint16_t name_length;
    char name[ROAD_OFFER_NAME];
} __attribute__((aligned(128)));

/* 128 bytes between what the two sides write, so that they do not take each other's cache lines. */
struct road_lane {
    uint32_t owner;   /* a process id, or 0: taken with compare-and-swap, given back by the daemon alone */
    uint32_t written; /* messages put in so far; the client's */
    uint32_t emptied; /* messages taken out when the client last looked */
    uint32_t holding; /* how many of its owner's threads may change the file system on the strength of an answer, or wait
                       * for one that lets them: raised before the question, lowered behind the notice of how it went */
    uint8_t apart_1[112];
    uint32_t taken;  /* messages taken out so far; the daemon's */
    uint32_t offers; /* how many slots for offers are in use: none need be looked at if there is none */
    uint8_t apart_2[120];
    struct road_offer offer[ROAD_OFFERS];
    uint16_t place_length;
    char place[ROAD_OFFER_PLACE]; /* of all offers: BRANCH/MIRROR/, behind which comes the entry's leaf */
    struct road_slot slots[ROAD_SLOTS];
    uint16_t text_length;
    char text[MESSAGE_TEXT_MAX + 1];              /* of the one request on its way that has a text */
    uint32_t reply __attribute__((aligned(128))); /* see above */
    uint32_t answer_size;
    uint8_t answer[MESSAGE_FIXED + 2 * RECORD_NAME_MAX + 2048];
} __attribute__((aligned(4096)));

/* Where a name was seen that has its home elsewhere, by its hash: the processes' own affair (names/location_hint.c). */
struct road_sighting {
    uint8_t bytes[192];
};

/* For one long answer. */
struct road_bay {
    uint32_t owner; /* the process that is answered, 0: free. Taken by the daemon alone, given back by either */
    uint32_t size;  /* what is used of the text */
    char text[PAGE_MAX];
} __attribute__((aligned(4096)));

struct road {
    uint64_t magic;
    uint32_t version;
    uint32_t lanes; /* ROAD_LANES of whoever made it */
    uint64_t session;
    struct dirid root;
    int32_t supervisor;                 /* the process that starts another one when it crashes; 0: nobody does */
    uint64_t pid_namespace;             /* its inode number: process ids mean something only within one */
    uint32_t redirected;                /* 1 once a directory may have times that its trunk does not show */
    uint16_t branch;                    /* this node's, as its index numbers it */
    uint16_t far;                       /* 1: the file system asks a server for each part of a path */
    uint32_t sole;                      /* 1 while all bits of homes are set */
    uint64_t homes[RECORD_SHARDS / 64]; /* a bit for each shard whose names are all in this node's index */
    uint64_t lease;       /* until then (CLOCK_BOOTTIME, ns) this node is of the session, ROAD_FOR_EVER while it is alone */
    uint32_t gains;       /* raised before a bit of homes is set: what was looked up before that says nothing */
    uint32_t offering;    /* how many lanes have offers: what was done by those the daemon may not have seen yet */
    uint32_t losses;      /* raised when a bit was cleared, before the names leave the index */
    uint64_t places;      /* how many renames of directories are under way in the session, and from ROAD_PLACES on, how often
                           * one had another place or let others through: forget where words led (shim/parent_cache.h) */
    pthread_mutex_t life; /* robust, shared, held by the daemon */
    uint8_t apart_1[128];
    uint32_t bell;      /* raised and woken for a sleeping daemon; a futex */
    uint32_t asleep;    /* the daemon is about to wait on it; an enum road_sleep */
    uint32_t processor; /* on which the daemon is, as it last saw */
    uint8_t apart_2[116];
    uint32_t answers[ROAD_LANES / ROAD_ROW]; /* raised and woken when lanes of a row are answered; futexes */
    uint8_t apart_3[128];
    /* A bit for each lane in which something came that the daemon is to look at now, or that can wait until it does. */
    uint64_t asked[ROAD_LANES / 64] __attribute__((aligned(64)));
    uint64_t told[ROAD_LANES / 64];
    struct road_sighting sightings[ROAD_SIGHTINGS] __attribute__((aligned(4096)));
    struct road_bay bays[ROAD_BAYS];
    struct road_lane lane[] __attribute__((aligned(4096)));
};

_Static_assert(sizeof(struct road_lane) == 16384, "what a lane takes is known");
#define ROAD_SIZE (sizeof(struct road) + ROAD_LANES * sizeof(struct road_lane))

/* Is it a road, and of this version? */
static inline bool road_is_known(const struct road *road)
{
    return road->magic == ROAD_MAGIC && road->version == ROAD_VERSION && road->lanes == ROAD_LANES;
}

/* Is the daemon there? glibc keeps the futex word of a mutex first (it is its ABI); the kernel sets
 * FUTEX_OWNER_DIED in a robust one when its owner ends, and a daemon that ends on purpose unlocks it. */
static inline bool road_is_alive(const struct road *road)
{
    uint32_t word = __atomic_load_n((const uint32_t *)&road->life.__data.__lock, __ATOMIC_ACQUIRE);
    return word != 0 && (word & FUTEX_OWNER_DIED) == 0;
}

/* It ended, and not on purpose. */
static inline bool road_has_crashed(const struct road *road)
{
    uint32_t word = __atomic_load_n((const uint32_t *)&road->life.__data.__lock, __ATOMIC_ACQUIRE);
    return (word & FUTEX_OWNER_DIED) != 0;
}
