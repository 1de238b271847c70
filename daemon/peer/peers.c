/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "peer/peers.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "peer/fabric.h"
#include "peer/pack.h"

#define MEMBERS 65536
#define WINDOW                                                                                                                 \
    4 /* frames on their way to one member: what is put meanwhile goes together when one is acknowledged, which so many        \
       * are at once, without waiting for company */
#define AGAIN_AFTER (2 * CLOCK_SECOND)      /* what was not acknowledged is sent again */
#define ELSEWHERE_AFTER (10 * CLOCK_SECOND) /* ... and to another of the member's addresses, when it was not for so long */
#define ACKNOWLEDGE_AFTER (CLOCK_SECOND / 2)
#define LATE_AFTER (CLOCK_SECOND / 2) /* what nobody waits for goes out */
#define CONGESTED 64                  /* frames on their way to one member */

/* A payload that is kept until the receiver has it. It is sealed again each time it goes out, since the epoch
 * may be another by then. */
struct outgoing {
    struct link link;
    uint64_t sequence;
    uint64_t sent;  /* when, the last time; 0: not yet */
    uint64_t since; /* when it was made */
    uint32_t size;
    uint8_t payload[];
};

struct peer {
    struct link link; /* on the list of those for which there is something to do, or on none */
    uint64_t instance;
    int handle; /* the fabric's */
    uint16_t member;
    uint64_t sequence;    /* of the last frame that was made */
    uint64_t received;    /* of the last that was taken; the next is one more */
    uint64_t told;        /* what it was told of that */
    uint64_t waits_since; /* since when it waits to be told, 0: it does not */
    uint64_t heard;       /* when it acknowledged something last, 0: never */
    bool keeps;           /* the fabric was told that its address is right */
    bool is_to_hear;      /* that the epoch is another */
    struct link outgoing; /* not acknowledged, the oldest first */
    unsigned outgoing_count;
    struct pack pack;    /* being filled */
    uint64_t late_since; /* when the first of them was put that nobody waits for, 0: none was */
    bool urgent;         /* one of them is waited for */
};

struct peers {
    struct fabric *fabric;
    struct frame_self self;
    struct peer **members; /* by number */
    uint16_t *numbers;     /* of those that are known */
    unsigned count;
    struct link busy; /* those that a flush looks at: a session has thousands */
    struct peers_counts counts;
    const uint8_t *bytes; /* the frame that is being read, NULL: none */
    size_t size;
    struct frame frame; /* open, if from != NULL, and its items are: */
    struct peer *from;
    struct pack_items items;
    bool doubtful;   /* frames are not acknowledged */
    bool hastens;    /* peers_hasten */
    bool looked;     /* at the session, because of this frame */
    uint8_t *sealed; /* FRAME_MAX */
};

int peers_create(struct peers **to)
{
    struct peers *peers = calloc(1, sizeof *peers);
    if (peers == NULL)
        return -ENOMEM;
    list_init(&peers->busy);
    peers->members = calloc(MEMBERS, sizeof *peers->members);
    peers->numbers = calloc(MEMBERS, sizeof *peers->numbers);
    peers->sealed = malloc(FRAME_MAX);
    peers->items.bytes = malloc(PACK_UNPACKED_MAX);
    const bool complete =
        peers->members != NULL && peers->numbers != NULL && peers->sealed != NULL && peers->items.bytes != NULL;
    int code = complete ? 0 : -ENOMEM;
    if (code == 0)
        code = frame_start();
    if (code != 0) {
        peers_destroy(peers);
        return code;
    }
    *to = peers;
    return 0;
}

int peers_open(struct peers *peers, const char *setting, void (*ring)(void *), void *context)
{
    struct fabric *fabric;
    int code = fabric_open(&fabric, setting, ring, context);
    if (code != 0)
        return code;
    __atomic_store_n(&peers->fabric, fabric, __ATOMIC_RELEASE);
    ring(context);
    return 0;
}

bool peers_is_open(const struct peers *peers)
{
    return __atomic_load_n(&peers->fabric, __ATOMIC_ACQUIRE) != NULL;
}

static void peers_forget_outgoing(struct peer *peer, struct outgoing *out)
{
    list_remove(&out->link);
    peer->outgoing_count--;
    free(out);
}

static void peers_be_busy(struct peers *peers, struct peer *peer)
{
    if (list_empty(&peer->link))
        list_append(&peers->busy, &peer->link);
}

static void peers_peer_free(struct peers *peers, struct peer *peer)
{
    list_remove(&peer->link);
    while (peer->outgoing.next != &peer->outgoing)
        peers_forget_outgoing(peer, LINK_OF(peer->outgoing.next, struct outgoing, link));
    fabric_peer_remove(peers->fabric, peer->handle);
    free(peer->pack.bytes);
    free(peer);
}

void peers_destroy(struct peers *peers)
{
    if (peers == NULL)
        return;
    for (unsigned i = 0; i < peers->count; i++)
        peers_peer_free(peers, peers->members[peers->numbers[i]]);
    fabric_close(peers->fabric);
    free(peers->members);
    free(peers->numbers);
    free(peers->sealed);
    free(peers->items.bytes);
    free(peers);
}

int peers_address(const struct peers *peers, uint8_t *to, size_t *size)
{
    return fabric_address(peers->fabric, to, size);
}

/* All that went out is to go out again: how much that is. */
static unsigned peers_recall(struct peer *peer)
{
    unsigned count = 0;
    for (struct link *link = peer->outgoing.next; link != &peer->outgoing; link = link->next) {
        struct outgoing *out = LINK_OF(link, struct outgoing, link);
        count += out->sent != 0;
        out->sent = 0;
    }
    return count;
}

/* What went out in an older epoch was perhaps refused, so it goes out again; and the others hear of the new
 * one at once. */
static void peers_renew(struct peers *peers, struct peer *peer)
{
    peers_recall(peer);
    peer->is_to_hear = true;
    peers_be_busy(peers, peer);
}

void peers_set_self(struct peers *peers, const struct frame_self *self)
{
    bool newer = self->epoch > peers->self.epoch;
    peers->self = *self;
    for (unsigned i = 0; i < peers->count && newer; i++)
        peers_renew(peers, peers->members[peers->numbers[i]]);
}

bool peers_knows(const struct peers *peers, uint16_t member)
{
    return peers->members[member] != NULL;
}

int peers_add(struct peers *peers, uint16_t member, uint64_t instance, const uint8_t *address, size_t size)
{
    if (peers_knows(peers, member))
        return 0;
    struct peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL)
        return -ENOMEM;
    peer->member = member;
    peer->instance = instance;
    peer->is_to_hear = true; /* it may have joined in an older epoch than ours */
    list_init(&peer->link);
    list_init(&peer->outgoing);
    peer->pack.bytes = malloc(FRAME_PAYLOAD_MAX);
    peer->handle = peer->pack.bytes != NULL ? fabric_peer_add(peers->fabric, address, size) : -ENOMEM;
    if (peer->handle < 0) {
        int code = peer->handle;
        free(peer->pack.bytes);
        free(peer);
        return code;
    }
    peers->members[member] = peer;
    peers->numbers[peers->count++] = member;
    peers_be_busy(peers, peer);
    return 0;
}

void peers_remove(struct peers *peers, uint16_t member)
{
    struct peer *peer = peers->members[member];
    unsigned at = 0;
    if (peer == NULL)
        return;
    while (peers->numbers[at] != member)
        at++;
    peers->numbers[at] = peers->numbers[--peers->count];
    peers->members[member] = NULL;
    if (peers->from == peer)
        peers->from = NULL;
    peers_peer_free(peers, peer);
}

/* Items. */

static int peers_close_frame(struct peer *peer)
{
    struct outgoing *out = malloc(sizeof *out + peer->pack.size);
    if (out == NULL)
        return -ENOMEM;
    out->sequence = ++peer->sequence;
    out->sent = 0;
    out->since = clock_monotonic();
    out->size = peer->pack.size;
    memcpy(out->payload, peer->pack.bytes, out->size);
    list_append(&peer->outgoing, &out->link);
    peer->outgoing_count++;
    pack_reset(&peer->pack);
    peer->late_since = 0;
    peer->urgent = false;
    return 0;
}

static int peers_enqueue(struct peers *peers, struct peer *peer, const struct frame_item *item)
{
    peers_be_busy(peers, peer);
    int code = pack_add(&peer->pack, item);
    if (code != -ENOSPC)
        return code;
    code = peers_close_frame(peer);
    return code == 0 ? pack_add(&peer->pack, item) : code;
}

int peers_put(struct peers *peers, uint16_t member, const struct frame_item *item)
{
    struct peer *peer = peers->members[member];
    if (peer == NULL)
        return -EHOSTUNREACH;
    int code = peers_enqueue(peers, peer, item);
    peer->urgent = true;
    return code;
}

int peers_put_late(struct peers *peers, uint16_t member, const struct frame_item *item)
{
    struct peer *peer = peers->members[member];
    if (peer == NULL)
        return -EHOSTUNREACH;
    int code = peers_enqueue(peers, peer, item);
    if (peer->late_since == 0)
        peer->late_since = clock_monotonic();
    return code;
}

static void peers_urge_one(struct peer *peer)
{
    peer->urgent = peer->pack.size > 0;
}

void peers_urge(struct peers *peers, uint16_t member)
{
    if (peers_knows(peers, member))
        peers_urge_one(peers->members[member]);
}

void peers_urge_all(struct peers *peers)
{
    for (struct link *link = peers->busy.next; link != &peers->busy; link = link->next)
        peers_urge_one(LINK_OF(link, struct peer, link));
}

bool peers_is_silent(const struct peers *peers, uint16_t member, uint64_t since)
{
    const struct peer *peer = peers->members[member];
    return peer != NULL && peer->outgoing_count > 0 &&
           clock_monotonic() - LINK_OF(peer->outgoing.next, struct outgoing, link)->since >= since;
}

bool peers_has_heard(const struct peers *peers, uint16_t member, uint64_t within)
{
    const struct peer *peer = peers->members[member];
    return peer != NULL && peer->heard != 0 && clock_monotonic() - peer->heard < within;
}

bool peers_are_congested(const struct peers *peers)
{
    for (const struct link *link = peers->busy.next; link != &peers->busy; link = link->next)
        if (LINK_OF(link, struct peer, link)->outgoing_count >= CONGESTED)
            return true;
    return false;
}

bool peers_is_idle(const struct peers *peers, uint16_t member)
{
    const struct peer *peer = peers->members[member];
    return peer == NULL || (peer->outgoing_count == 0 && peer->pack.size == 0);
}

uint64_t peers_frame(const struct peers *peers, uint16_t member)
{
    const struct peer *peer = peers->members[member];
    return peer == NULL ? 0 : peer->sequence + (peer->pack.size > 0);
}

bool peers_has_got(const struct peers *peers, uint16_t member, uint64_t frame)
{
    const struct peer *peer = peers->members[member];
    return peer == NULL || peer->sequence - peer->outgoing_count >= frame;
}

/* Frames going out. */

/* Each says what was received, too. */
static int peers_send_frame(struct peers *peers, struct peer *peer, uint64_t sequence, const uint8_t *payload, uint32_t size)
{
    const struct frame frame = {.receiver = peer->member,
                                .receiver_instance = peer->instance,
                                .sequence = sequence,
                                .received = peer->received,
                                .size = size,
                                .payload = payload};
    int sealed = frame_seal(peers->sealed, FRAME_MAX, &frame, &peers->self);
    int code = sealed < 0 ? sealed : fabric_send(peers->fabric, peer->handle, peers->sealed, (size_t)sealed);
    if (code != 0)
        return code;
    peers->counts.frames_sent++;
    peers->counts.bytes_sent += (uint64_t)sealed;
    peer->told = peer->received;
    peer->waits_since = 0;
    peer->is_to_hear = false;
    return 0;
}

/* The receiver refuses what follows a frame that was lost. So all go again as soon as the oldest is due: if
 * each waited for its own time, what is sent meanwhile would be refused, too, and so on for as long as there
 * is something to say. */
static void peers_recall_if_lost(struct peers *peers, struct peer *peer, uint64_t now)
{
    const struct link *first = peer->outgoing.next;
    const struct outgoing *oldest = first != &peer->outgoing ? LINK_OF(first, struct outgoing, link) : NULL;
    if (oldest == NULL || oldest->sent == 0 || now - oldest->sent < AGAIN_AFTER)
        return;
    peers->counts.sent_again += peers_recall(peer);
    peers->doubtful = true;
    /* By lot: both sides may turn, and in step they might never both have the right address at once. */
    if ((peer->heard == 0 || now - oldest->since > ELSEWHERE_AFTER) && randombytes_uniform(2) == 0) {
        fabric_peer_turn(peers->fabric, peer->handle);
        peer->keeps = false;
    }
}

/* What the fabric does not take now goes out with a later flush. */
static void peers_send_outgoing(struct peers *peers, struct peer *peer, uint64_t now)
{
    for (struct link *link = peer->outgoing.next; link != &peer->outgoing; link = link->next) {
        struct outgoing *out = LINK_OF(link, struct outgoing, link);
        if (out->sent != 0)
            continue;
        if (peers_send_frame(peers, peer, out->sequence, out->payload, out->size) != 0)
            return;
        out->sent = now;
    }
}

void peers_hasten(struct peers *peers, bool hastens)
{
    peers->hastens = hastens;
}

static bool peers_is_overdue(const struct peers *peers, const struct peer *peer, uint64_t now)
{
    return peer->is_to_hear || peer->received - peer->told >= WINDOW ||
           (peer->waits_since != 0 && (peers->hastens || now - peer->waits_since >= ACKNOWLEDGE_AFTER));
}

static bool peers_are_to_go(const struct peers *peers, const struct peer *peer, uint64_t now)
{
    return peer->pack.size > 0 && peer->outgoing_count < WINDOW &&
           (peer->urgent || peers->hastens || peers_is_overdue(peers, peer, now) || now - peer->late_since >= LATE_AFTER);
}

static void peers_flush_one(struct peers *peers, struct peer *peer, uint64_t now)
{
    if (peers_are_to_go(peers, peer, now) && peers_close_frame(peer) != 0)
        return; /* no memory: with the next batch */
    peers_recall_if_lost(peers, peer, now);
    peers_send_outgoing(peers, peer, now);
    if (peers_is_overdue(peers, peer, now))
        peers_send_frame(peers, peer, 0, NULL, 0);
}

/* Does anything of it wait to go out, or for time to pass? */
static bool peers_is_busy(const struct peer *peer)
{
    return peer->pack.size > 0 || peer->outgoing_count > 0 || peer->waits_since != 0 || peer->is_to_hear;
}

void peers_flush(struct peers *peers)
{
    uint64_t now = list_empty(&peers->busy) ? 0 : clock_monotonic();
    for (struct link *link = peers->busy.next, *next; link != &peers->busy; link = next) {
        struct peer *peer = LINK_OF(link, struct peer, link);
        next = link->next;
        peers_flush_one(peers, peer, now);
        if (!peers_is_busy(peer))
            list_remove(link);
    }
    if (peers->count > 0)
        fabric_nudge(peers->fabric);
}

bool peers_wait(const struct peers *peers)
{
    for (const struct link *link = peers->busy.next; link != &peers->busy; link = link->next)
        if (peers_is_busy(LINK_OF(link, struct peer, link)))
            return true;
    return false;
}

/* Frames coming in. */

static void peers_take_acknowledgement(struct peers *peers, struct peer *peer, uint64_t received)
{
    unsigned before = peer->outgoing_count;
    while (peer->outgoing_count > 0) {
        struct outgoing *oldest = LINK_OF(peer->outgoing.next, struct outgoing, link);
        if (oldest->sequence > received)
            break;
        peers_forget_outgoing(peer, oldest);
    }
    if (peer->outgoing_count == before)
        return;
    if (!peer->keeps)
        fabric_peer_keep(peers->fabric, peer->handle);
    peer->keeps = true;
    peer->heard = clock_monotonic();
}

static void peers_drop(struct peers *peers)
{
    peers->counts.dropped++;
    fabric_release(peers->fabric, peers->bytes);
    peers->bytes = NULL;
}

/* Of a frame that is authentic: is it the next of its sender? One that came before is acknowledged again: the
 * sender may not have heard of it. */
static bool peers_is_next(struct peers *peers, struct peer *peer)
{
    const struct frame *frame = &peers->frame;
    if (frame->sender_instance != peer->instance)
        return false;
    peers_take_acknowledgement(peers, peer, frame->received);
    if (frame->sequence == 0)
        return true;
    if (peer->waits_since == 0)
        peer->waits_since = clock_monotonic();
    peers_be_busy(peers, peer);
    if (frame->sequence != peer->received + 1)
        return false;
    peer->received++;
    return true;
}

/* Opens the frame at hand: 0 it is open, or was dropped, or says nothing; PEERS_NEWER. */
static int peers_open_frame(struct peers *peers)
{
    int code = frame_open(&peers->frame, peers->bytes, peers->size, &peers->self);
    struct peer *peer = code >= 0 ? peers->members[peers->frame.sender] : NULL;
    if (code >= 0 && !peers->looked && (code == FRAME_NEWER || peer == NULL)) {
        peers->looked = true;
        return PEERS_NEWER;
    }
    /* While the session cannot be read a newer one is refused, and comes again. One that itself cannot be read is acknowledged:
     * it would not become readable. */
    if (peer == NULL || code == FRAME_NEWER || !peers_is_next(peers, peer) ||
        pack_open(&peers->items, peers->frame.payload, peers->frame.sequence != 0 ? peers->frame.size : 0) != 0) {
        peers_drop(peers);
        return 0;
    }
    peers->from = peer;
    return 0;
}

/* 1: there is one at hand, perhaps not open. */
static int peers_take_frame(struct peers *peers)
{
    if (!peers_is_open(peers))
        return 0;
    if (peers->bytes == NULL) {
        if (fabric_next(peers->fabric, &peers->bytes, &peers->size) != 1)
            return 0;
        peers->counts.frames_received++;
        peers->from = NULL;
        peers->looked = false;
    }
    return 1;
}

static int peers_next_item(struct peers *peers, uint16_t *member, struct frame_item *item)
{
    if (pack_next(&peers->items, item) == 1) {
        *member = peers->from->member;
        return 1;
    }
    fabric_release(peers->fabric, peers->bytes);
    peers->bytes = NULL;
    peers->from = NULL;
    return 0;
}

int peers_next(struct peers *peers, uint16_t *member, struct frame_item *item)
{
    if (peers->doubtful) {
        peers->doubtful = false;
        return PEERS_NEWER;
    }
    while (peers_take_frame(peers)) {
        int code = peers->from != NULL ? 0 : peers_open_frame(peers);
        if (code != 0)
            return code;
        if (peers->from != NULL && peers_next_item(peers, member, item) == 1)
            return 1;
    }
    return 0;
}

const struct peers_counts *peers_counts(const struct peers *peers)
{
    return &peers->counts;
}
