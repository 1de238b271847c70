/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "peer/fabric.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/faults.h"
#include "base/list.h"
#include "peer/addresses.h"
#include "peer/provider.h"

#define COMPLETIONS 4096
#define BATCH 32 /* completions that are looked at under one lock */
#define PAUSE_FIRST CLOCK_MILLISECOND
#define PAUSE_LONGEST (500 * CLOCK_MILLISECOND)
#define PATIENCE_FIRST CLOCK_MILLISECOND
#define PATIENCE_LONGEST (20 * CLOCK_MILLISECOND)
#define WAKE_AGAIN (20 * CLOCK_MILLISECOND)
#define TURN_AFTER (FABRIC_CONNECT_SECONDS * CLOCK_SECOND / ADDRESSES_MAX)

/* What libfabric is at work on; it gives the address of `context` back. */
struct operation {
    struct fi_context2 context;
    bool is_send;
};

struct outgoing {
    struct operation operation;
    struct link link; /* on its peer's queue, or on `flying` */
    struct peer *peer;
    size_t size;
    uint8_t bytes[];
};

struct incoming {
    struct operation operation;
    struct link link; /* on `received` or `unposted`, or on no list: posted, or at the caller */
    size_t size;
    uint8_t bytes[FABRIC_FRAME_MAX];
};

enum peer_state { PEER_FREE, PEER_KNOWN, PEER_REMOVED /* until the last of its frames is back */ };

struct peer {
    enum peer_state state;
    fi_addr_t addresses[ADDRESSES_MAX]; /* in the order in which they are tried */
    unsigned address_count, at;         /* how many, and which is in use */
    bool keeps;                         /* the one in use is right */
    struct link queue;                  /* frames that libfabric has not taken yet */
    unsigned flying;                    /* frames that it has taken and did not finish */
    unsigned frames;                    /* all these */
    size_t bytes;                       /* ... */
    bool refused;                       /* a send: ring when there is room */
    struct link link;                   /* on `connecting` */
    uint64_t give_up;                   /* while on `connecting`: when */
    uint64_t next, pause;               /* ... and when to try again, and how long after that */
    uint64_t turn;                      /* ... and when to try another address */
};

struct fabric {
    struct provider provider;
    void (*ring)(void *context);
    void *context;
    pthread_t thread;
    bool thread_runs;
    pthread_mutex_t lock; /* of all below */
    int broken;           /* 0 or -errno */
    bool ending;
    bool ring_due;         /* the thread is to ring */
    unsigned wakes, awoke; /* how often the thread was woken, and what of that it has noticed */
    struct link received, unposted, flying, connecting;
    uint64_t patience; /* how long the thread waits until it looks whether one of `flying` has ended */
    struct fabric_counts counts;
    struct own_address own[ADDRESSES_OWN_MAX]; /* when the fabric was opened: for the order in which others' are tried */
    size_t own_count;
    struct incoming *buffers;
    unsigned peer_count; /* slots that were ever used */
    struct peer peers[FABRIC_PEERS_MAX];
};

/* libfabric loses a signal that comes between the reader's last look for one and its sleep (util_wait.c of 1.17 takes
 * it off there without a look): what is urgent is said again until it was noticed. */
static void fabric_wake_thread(struct fabric *fabric)
{
    fabric->wakes++;
    fi_cq_signal(fabric->provider.received);
}

/* --- what is sent --- */

static bool fabric_has_room(const struct peer *peer, size_t size)
{
    return peer->frames < FABRIC_QUEUE_FRAMES && peer->bytes + size <= FABRIC_QUEUE_BYTES;
}

static void fabric_forget_outgoing(struct fabric *fabric, struct outgoing *one, bool was_sent)
{
    struct peer *peer = one->peer;
    *(was_sent ? &fabric->counts.sent : &fabric->counts.failed) += 1;
    peer->frames--;
    peer->bytes -= one->size;
    if (peer->state == PEER_REMOVED && peer->frames == 0)
        peer->state = PEER_FREE;
    if (peer->refused && fabric_has_room(peer, FABRIC_FRAME_MAX)) {
        peer->refused = false;
        fabric->ring_due = true;
    }
    list_remove(&one->link);
    free(one);
}

static void fabric_drop_queue(struct fabric *fabric, struct peer *peer)
{
    while (!list_empty(&peer->queue))
        fabric_forget_outgoing(fabric, LINK_OF(peer->queue.next, struct outgoing, link), false);
    list_remove(&peer->link);
}

static void fabric_turn(struct peer *peer)
{
    peer->at = (peer->at + 1) % peer->address_count;
}

/* libfabric has no event for a connection that was made, nor for one that was refused: it says "not yet" to
 * each send until there is one, and each such send connects again if need be. So, after growing pauses, it is
 * asked again; but not for ever, and not at an address that leads nowhere while there is another. */
static void fabric_connect_later(struct fabric *fabric, struct peer *peer, uint64_t now)
{
    if (list_empty(&peer->link)) {
        list_append(&fabric->connecting, &peer->link);
        peer->give_up = now + FABRIC_CONNECT_SECONDS * CLOCK_SECOND;
        peer->pause = PAUSE_FIRST;
        peer->turn = now + TURN_AFTER;
    } else if (now >= peer->give_up) {
        fabric_drop_queue(fabric, peer);
    } else if (now >= peer->turn && peer->address_count > 1 && !peer->keeps) {
        fabric_turn(peer);
        peer->pause = PAUSE_FIRST;
        peer->turn = now + TURN_AFTER;
    } else if (peer->pause < PAUSE_LONGEST) {
        peer->pause *= 2;
    }
    peer->next = now + peer->pause;
}

static int fabric_send_one(struct fabric *fabric, struct outgoing *one)
{
    fi_addr_t to = one->peer->addresses[one->peer->at];
    return (int)provider_code(fi_send(fabric->provider.endpoint, one->bytes, one->size, NULL, to, &one->operation.context));
}

/* Hands over what waits for a peer, as far as libfabric takes it. When it does not while frames of that peer
 * are under way, the completion of one of those leads back here. */
static void fabric_send_queue(struct fabric *fabric, struct peer *peer, uint64_t now)
{
    int code = 0;
    while (code == 0 && !list_empty(&peer->queue)) {
        struct outgoing *one = LINK_OF(peer->queue.next, struct outgoing, link);
        code = fabric_send_one(fabric, one);
        if (code != 0)
            break;
        list_remove(&peer->link);
        list_remove(&one->link);
        list_append(&fabric->flying, &one->link);
        peer->flying++;
    }
    if (code == -EAGAIN && peer->flying == 0)
        fabric_connect_later(fabric, peer, now);
    else if (code != 0 && code != -EAGAIN)
        fabric_drop_queue(fabric, peer);
}

static void fabric_end_send(struct fabric *fabric, struct outgoing *one, bool was_sent)
{
    struct peer *peer = one->peer;
    peer->flying--;
    fabric_forget_outgoing(fabric, one, was_sent);
    if (list_empty(&peer->link))
        fabric_send_queue(fabric, peer, clock_monotonic());
}

/* Tries those whose time has come. */
static void fabric_connect_again(struct fabric *fabric)
{
    uint64_t now = list_empty(&fabric->connecting) ? 0 : clock_monotonic();
    struct link *link = fabric->connecting.next, *next;
    for (; link != &fabric->connecting; link = next) {
        struct peer *peer = LINK_OF(link, struct peer, link);
        next = link->next;
        if (peer->next <= now)
            fabric_send_queue(fabric, peer, now);
    }
}

/* How long the thread may sleep: milliseconds, or -1 for as long as nothing happens. */
static int fabric_sleep_limit(struct fabric *fabric)
{
    bool is_idle = list_empty(&fabric->connecting) && list_empty(&fabric->flying);
    uint64_t now = is_idle ? 0 : clock_monotonic();
    uint64_t first = list_empty(&fabric->flying) ? UINT64_MAX : now + fabric->patience;
    for (struct link *link = fabric->connecting.next; link != &fabric->connecting; link = link->next)
        if (LINK_OF(link, struct peer, link)->next < first)
            first = LINK_OF(link, struct peer, link)->next;
    if (!list_empty(&fabric->unposted))
        return 1;
    if (first == UINT64_MAX)
        return -1;
    return first <= now ? 0 : (int)((first - now + CLOCK_MILLISECOND - 1) / CLOCK_MILLISECOND);
}

/* --- what is received --- */

/* Gives a buffer to libfabric. One that it does not take now is granted again by the thread. */
static void fabric_post(struct fabric *fabric, struct incoming *one)
{
    long code = fi_recv(fabric->provider.endpoint, one->bytes, FABRIC_FRAME_MAX, NULL, FI_ADDR_UNSPEC, &one->operation.context);
    if (code != 0)
        list_append(&fabric->unposted, &one->link);
}

static void fabric_post_rest(struct fabric *fabric)
{
    struct link rest;
    list_init(&rest);
    list_move(&rest, &fabric->unposted);
    for (struct link *link; (link = list_take(&rest)) != NULL;)
        fabric_post(fabric, LINK_OF(link, struct incoming, link));
}

static void fabric_end_receive(struct fabric *fabric, struct incoming *one, size_t size)
{
    one->size = size;
    fabric->counts.received++;
    list_append(&fabric->received, &one->link);
    fabric->ring_due = true;
}

/* --- the thread --- */

static void fabric_end_operation(struct fabric *fabric, const struct fi_cq_msg_entry *entry)
{
    struct operation *operation = entry->op_context;
    if (operation == NULL)
        return;
    if (operation->is_send)
        fabric_end_send(fabric, (struct outgoing *)operation, true);
    else
        fabric_end_receive(fabric, (struct incoming *)operation, entry->len);
}

/* An operation that came to nothing: a receive among them when its connection broke in the middle, or when
 * the frame was too long. */
static void fabric_end_failed(struct fabric *fabric, struct fid_cq *queue)
{
    struct fi_cq_err_entry error = {0};
    if (fi_cq_readerr(queue, &error, 0) <= 0 || error.op_context == NULL)
        return;
    struct operation *operation = error.op_context;
    if (operation->is_send) {
        fabric_end_send(fabric, (struct outgoing *)operation, false);
    } else {
        fabric->counts.dropped++;
        fabric_post(fabric, (struct incoming *)operation);
    }
}

/* What was read of a queue. */
static void fabric_take_completions(struct fabric *fabric, struct fid_cq *queue, const struct fi_cq_msg_entry *entries,
                                    long count)
{
    for (long i = 0; i < count; i++)
        fabric_end_operation(fabric, &entries[i]);
    if (count == -FI_EAVAIL)
        fabric_end_failed(fabric, queue);
    else if (count < 0 && count != -FI_EAGAIN && count != -FI_EINTR)
        fabric->broken = (int)provider_code(count);
}

/* Most sends are over when they are begun, as far as libfabric is concerned: the sender looks itself. For the thread
 * to be woken by each would cost more than the send. */
static void fabric_take_sent(struct fabric *fabric)
{
    struct fi_cq_msg_entry entries[BATCH];
    long count = list_empty(&fabric->flying) ? 0 : 1;
    while ((count > 0 || count == -FI_EAVAIL) && !list_empty(&fabric->flying)) {
        count = fi_cq_read(fabric->provider.sent, entries, BATCH);
        fabric_take_completions(fabric, fabric->provider.sent, entries, count);
    }
}

/* The thread's looks, ever less often while nothing moves. */
static void fabric_look_at_sent(struct fabric *fabric)
{
    uint64_t before = fabric->counts.sent + fabric->counts.failed;
    fabric_take_sent(fabric);
    bool moves = fabric->counts.sent + fabric->counts.failed != before || list_empty(&fabric->flying);
    fabric->patience = moves                                     ? PATIENCE_FIRST
                       : fabric->patience < PATIENCE_LONGEST / 2 ? 2 * fabric->patience
                                                                 : PATIENCE_LONGEST;
}

static void *fabric_carry(void *context)
{
    struct fabric *fabric = context;
    struct fi_cq_msg_entry entries[BATCH];
    bool going_on = true;
    int limit = 0;
    while (going_on) {
        long count = fi_cq_sread(fabric->provider.received, entries, BATCH, NULL, limit);
        pthread_mutex_lock(&fabric->lock);
        fabric->awoke = fabric->wakes;
        fabric_take_completions(fabric, fabric->provider.received, entries, count);
        fabric_look_at_sent(fabric);
        fabric_post_rest(fabric);
        fabric_connect_again(fabric);
        limit = fabric_sleep_limit(fabric);
        going_on = !fabric->ending && fabric->broken == 0;
        bool ring = (fabric->ring_due || fabric->broken != 0) && !fabric->ending;
        fabric->ring_due = false;
        pthread_mutex_unlock(&fabric->lock);
        if (ring)
            fabric->ring(fabric->context);
    }
    return NULL;
}

/* --- from the outside --- */

static int fabric_make_buffers(struct fabric *fabric)
{
    fabric->buffers = calloc(FABRIC_BUFFERS, sizeof *fabric->buffers);
    if (fabric->buffers == NULL)
        return -ENOMEM;
    for (int i = 0; i < FABRIC_BUFFERS; i++) {
        list_init(&fabric->buffers[i].link);
        fabric_post(fabric, &fabric->buffers[i]);
    }
    return 0;
}

static int fabric_start(struct fabric *fabric, const char *setting)
{
    int code = provider_open(&fabric->provider, setting, COMPLETIONS);
    int own = code == 0 ? addresses_find_own(fabric->own, NULL) : 0;
    fabric->own_count = own > 0 ? (size_t)own : 0;
    if (code == 0)
        code = fabric_make_buffers(fabric);
    if (code == 0)
        code = -pthread_create(&fabric->thread, NULL, fabric_carry, fabric);
    fabric->thread_runs = code == 0;
    return code;
}

/* Threads that are made here, also libfabric's own, take no signals: main's is the one that SIGTERM must
 * reach. */
int fabric_open(struct fabric **to, const char *setting, void (*ring)(void *context), void *context)
{
    sigset_t all, before;
    struct fabric *fabric = calloc(1, sizeof *fabric);
    if (fabric == NULL)
        return -ENOMEM;
    fabric->ring = ring;
    fabric->context = context;
    pthread_mutex_init(&fabric->lock, NULL);
    list_init(&fabric->received);
    list_init(&fabric->unposted);
    list_init(&fabric->flying);
    list_init(&fabric->connecting);
    faults_excepted(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = fabric_start(fabric, setting);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        fabric_close(fabric);
    else
        *to = fabric;
    return code;
}

static void fabric_end_thread(struct fabric *fabric)
{
    int code;
    pthread_mutex_lock(&fabric->lock);
    fabric->ending = true;
    pthread_mutex_unlock(&fabric->lock);
    do {
        fi_cq_signal(fabric->provider.received);
        const struct timespec until = clock_split(clock_files() + WAKE_AGAIN);
        code = pthread_timedjoin_np(fabric->thread, NULL, &until);
    } while (code == ETIMEDOUT);
}

void fabric_nudge(struct fabric *fabric)
{
    pthread_mutex_lock(&fabric->lock);
    if (fabric->awoke != fabric->wakes)
        fi_cq_signal(fabric->provider.received);
    pthread_mutex_unlock(&fabric->lock);
}

void fabric_close(struct fabric *fabric)
{
    if (fabric == NULL)
        return;
    if (fabric->thread_runs)
        fabric_end_thread(fabric);
    provider_close(&fabric->provider);
    for (unsigned i = 0; i < fabric->peer_count; i++)
        list_move(&fabric->flying, &fabric->peers[i].queue);
    for (struct link *link; (link = list_take(&fabric->flying)) != NULL;)
        free(LINK_OF(link, struct outgoing, link));
    free(fabric->buffers);
    pthread_mutex_destroy(&fabric->lock);
    free(fabric);
}

static int fabric_own_socket(struct fabric *fabric, void *bytes, size_t *size)
{
    int code = fi_getname(&fabric->provider.endpoint->fid, bytes, size);
    return code == -FI_ETOOSMALL ? -ENOBUFS : (int)provider_code(code);
}

static bool fabric_is_of_sockets(const struct fabric *fabric)
{
    uint32_t format = fabric->provider.info->addr_format;
    return format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
}

int fabric_address(struct fabric *fabric, uint8_t *bytes, size_t *size)
{
    struct sockaddr_storage bound;
    struct address all[ADDRESSES_MAX];
    size_t bound_size = sizeof bound;
    if (!fabric_is_of_sockets(fabric))
        return fabric_own_socket(fabric, bytes, size);
    int code = fabric_own_socket(fabric, &bound, &bound_size);
    if (code != 0)
        return code;
    const struct sockaddr *at = (const struct sockaddr *)&bound;
    size_t used = sizeof *all * addresses_to_publish(all, at, fabric->own, fabric->own_count);
    if (used > *size)
        return -ENOBUFS;
    memcpy(bytes, all, used);
    *size = used;
    return 0;
}

static struct peer *fabric_free_peer(struct fabric *fabric)
{
    for (unsigned i = 0; i < fabric->peer_count; i++)
        if (fabric->peers[i].state == PEER_FREE)
            return &fabric->peers[i];
    return fabric->peer_count < FABRIC_PEERS_MAX ? &fabric->peers[fabric->peer_count++] : NULL;
}

/* Adds an address, as the provider has them. 0 or -errno. */
static int fabric_add_address(struct fabric *fabric, struct peer *peer, const void *address)
{
    long code = fi_av_insert(fabric->provider.peers, address, 1, &peer->addresses[peer->address_count], 0, NULL);
    if (code != 1)
        return code < 0 ? (int)provider_code(code) : -EINVAL;
    peer->address_count++;
    return 0;
}

/* As many as are of a family that our socket reaches. */
static int fabric_add_sockets(struct fabric *fabric, struct peer *peer, const uint8_t *bytes, size_t size)
{
    struct address all[ADDRESSES_MAX];
    struct sockaddr_storage socket, own;
    size_t own_size = sizeof own, count = size / sizeof *all;
    if (size % sizeof *all != 0 || count > ADDRESSES_MAX)
        return -EINVAL;
    memcpy(all, bytes, size);
    addresses_sort(all, count, fabric->own, fabric->own_count);
    int code = fabric_own_socket(fabric, &own, &own_size);
    for (size_t i = 0; code == 0 && i < count; i++)
        if (address_to_socket(&all[i], own.ss_family, &socket) > 0)
            code = fabric_add_address(fabric, peer, &socket);
    return code;
}

static int fabric_add_addresses(struct fabric *fabric, struct peer *peer, const uint8_t *bytes, size_t size)
{
    uint8_t own[FABRIC_ADDRESS_MAX];
    size_t own_size = sizeof own;
    if (fabric_is_of_sockets(fabric))
        return fabric_add_sockets(fabric, peer, bytes, size);
    if (fabric_own_socket(fabric, own, &own_size) != 0 || own_size != size) /* a provider's addresses are of one size */
        return -EINVAL;
    return fabric_add_address(fabric, peer, bytes);
}

static void fabric_remove_addresses(struct fabric *fabric, struct peer *peer)
{
    for (unsigned i = 0; i < peer->address_count; i++)
        fi_av_remove(fabric->provider.peers, &peer->addresses[i], 1, 0);
    peer->address_count = 0;
}

static int fabric_add_peer(struct fabric *fabric, const uint8_t *bytes, size_t size)
{
    struct peer *peer = fabric_free_peer(fabric);
    if (peer == NULL)
        return -ENOSPC;
    *peer = (struct peer){0};
    list_init(&peer->queue);
    list_init(&peer->link);
    int code = fabric_add_addresses(fabric, peer, bytes, size);
    if (code == 0 && peer->address_count == 0)
        code = -EINVAL;
    if (code != 0) {
        fabric_remove_addresses(fabric, peer);
        return code;
    }
    peer->state = PEER_KNOWN;
    return (int)(peer - fabric->peers);
}

int fabric_peer_add(struct fabric *fabric, const uint8_t *bytes, size_t size)
{
    pthread_mutex_lock(&fabric->lock);
    int answer = fabric_add_peer(fabric, bytes, size);
    pthread_mutex_unlock(&fabric->lock);
    return answer;
}

static struct peer *fabric_find_peer(struct fabric *fabric, int peer)
{
    bool known = peer >= 0 && (unsigned)peer < fabric->peer_count && fabric->peers[peer].state == PEER_KNOWN;
    return known ? &fabric->peers[peer] : NULL;
}

int fabric_peer_remove(struct fabric *fabric, int number)
{
    pthread_mutex_lock(&fabric->lock);
    struct peer *peer = fabric_find_peer(fabric, number);
    if (peer != NULL) {
        peer->refused = false;
        fabric_drop_queue(fabric, peer);
        fabric_remove_addresses(fabric, peer);
        peer->state = peer->frames > 0 ? PEER_REMOVED : PEER_FREE;
    }
    pthread_mutex_unlock(&fabric->lock);
    return peer != NULL ? 0 : -ENOENT;
}

void fabric_peer_turn(struct fabric *fabric, int number)
{
    pthread_mutex_lock(&fabric->lock);
    struct peer *peer = fabric_find_peer(fabric, number);
    if (peer != NULL) {
        peer->keeps = false;
        fabric_turn(peer);
    }
    pthread_mutex_unlock(&fabric->lock);
}

void fabric_peer_keep(struct fabric *fabric, int number)
{
    pthread_mutex_lock(&fabric->lock);
    struct peer *peer = fabric_find_peer(fabric, number);
    if (peer != NULL)
        peer->keeps = true;
    pthread_mutex_unlock(&fabric->lock);
}

static int fabric_enqueue(struct fabric *fabric, int number, struct outgoing *one)
{
    struct peer *peer = fabric_find_peer(fabric, number);
    if (fabric->broken != 0)
        return -EIO;
    if (peer == NULL)
        return -ENOENT;
    if (!fabric_has_room(peer, one->size)) {
        peer->refused = true;
        return -EAGAIN;
    }
    one->peer = peer;
    peer->frames++;
    peer->bytes += one->size;
    bool first = list_empty(&peer->queue);
    list_append(&peer->queue, &one->link);
    if (first)
        fabric_send_queue(fabric, peer, clock_monotonic());
    fabric_take_sent(fabric);
    if (!list_empty(&fabric->flying) || !list_empty(&peer->link) || fabric->ring_due)
        fabric_wake_thread(fabric); /* to look at what is under way, at the clock, or to ring */
    return 0;
}

int fabric_send(struct fabric *fabric, int peer, const uint8_t *bytes, size_t size)
{
    if (size == 0 || size > FABRIC_FRAME_MAX)
        return -EMSGSIZE;
    struct outgoing *one = malloc(sizeof *one + size);
    if (one == NULL)
        return -ENOMEM;
    one->operation = (struct operation){.is_send = true};
    one->size = size;
    list_init(&one->link);
    memcpy(one->bytes, bytes, size);
    pthread_mutex_lock(&fabric->lock);
    int code = fabric_enqueue(fabric, peer, one);
    pthread_mutex_unlock(&fabric->lock);
    if (code != 0)
        free(one);
    return code;
}

int fabric_next(struct fabric *fabric, const uint8_t **bytes, size_t *size)
{
    if (list_seems_empty(&fabric->received) && __atomic_load_n(&fabric->broken, __ATOMIC_RELAXED) == 0)
        return 0;
    pthread_mutex_lock(&fabric->lock);
    struct link *link = list_take(&fabric->received);
    int broken = fabric->broken;
    pthread_mutex_unlock(&fabric->lock);
    if (link == NULL)
        return broken != 0 ? -EIO : 0;
    struct incoming *one = LINK_OF(link, struct incoming, link);
    *bytes = one->bytes;
    *size = one->size;
    return 1;
}

void fabric_release(struct fabric *fabric, const uint8_t *bytes)
{
    struct incoming *one = LINK_OF(bytes, struct incoming, bytes);
    pthread_mutex_lock(&fabric->lock);
    fabric_post(fabric, one);
    if (!list_empty(&one->link))
        fabric_wake_thread(fabric);
    pthread_mutex_unlock(&fabric->lock);
}

void fabric_counts(struct fabric *fabric, struct fabric_counts *to)
{
    pthread_mutex_lock(&fabric->lock);
    *to = fabric->counts;
    pthread_mutex_unlock(&fabric->lock);
}
