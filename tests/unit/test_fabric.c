/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "peer/fabric.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "leaks.h"
#include "peer/addresses.h"

#define LOOPBACK "tcp:127.0.0.1"
#define DEADLINE 60 /* seconds, for what takes milliseconds */

/* One daemon's end, and the members it knows. */
struct end {
    struct fabric *fabric;
    uint8_t address[FABRIC_ADDRESS_MAX];
    size_t address_size;
};

static struct end ends[3];
static sem_t rung; /* by any of them */
static const char *setting = LOOPBACK;
static bool long_ones = true; /* some frames are as long as can be */
static int taken_ports[2];    /* of nobody's */
static unsigned taken_count;

static void fabric_ring(void *context)
{
    sem_post(context);
}

static void wait_ring(void)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += DEADLINE;
    cr_assert_eq(sem_timedwait(&rung, &limit), 0, "nothing was heard for %d s", DEADLINE);
}

static void open_end(struct end *end)
{
    cr_assert_eq(fabric_open(&end->fabric, setting, fabric_ring, &rung), 0);
    end->address_size = sizeof end->address;
    cr_assert_eq(fabric_address(end->fabric, end->address, &end->address_size), 0);
}

static void close_end(struct end *end)
{
    fabric_close(end->fabric);
    end->fabric = NULL;
}

static int fabric_know(struct end *end, const struct end *other)
{
    int peer = fabric_peer_add(end->fabric, other->address, other->address_size);
    cr_assert_geq(peer, 0);
    return peer;
}

static void fabric_begin(void)
{
    sem_init(&rung, 0, 0);
}

static void close_all(void)
{
    while (taken_count > 0)
        close(taken_ports[--taken_count]);
    for (int i = 0; i < 3; i++)
        close_end(&ends[i]);
    leaks_none();
}

TestSuite(fabric, .init = fabric_begin, .fini = close_all);

/* A frame's bytes say its sender and as which. */
static size_t fabric_fill(uint8_t *bytes, uint8_t sender, uint32_t number)
{
    size_t size = long_ones && number % 997 == 0 ? FABRIC_FRAME_MAX : 5 + number * 37u % 2000;
    bytes[0] = sender;
    memcpy(bytes + 1, &number, 4);
    for (size_t i = 5; i < size; i++)
        bytes[i] = (uint8_t)(number + i * sender);
    return size;
}

/* Takes what is there; frames of each sender must come in order and whole. */
static uint32_t take_all(struct end *end, uint32_t next[4])
{
    static uint8_t expected[FABRIC_FRAME_MAX];
    const uint8_t *bytes;
    size_t size;
    uint32_t taken = 0;
    for (int code; (code = fabric_next(end->fabric, &bytes, &size)) != 0; taken++) {
        cr_assert_eq(code, 1);
        uint8_t sender = bytes[0];
        cr_assert(sender > 0 && sender < 4);
        cr_assert_eq(size, fabric_fill(expected, sender, next[sender]), "sender %d, frame %u", sender, next[sender]);
        cr_assert_eq(memcmp(bytes, expected, size), 0);
        next[sender]++;
        fabric_release(end->fabric, bytes);
    }
    return taken;
}

/* Sends to one peer as many as are taken now. */
static uint32_t send_some(struct end *end, int peer, uint8_t sender, uint32_t from, uint32_t to)
{
    static uint8_t bytes[FABRIC_FRAME_MAX];
    int code = 0;
    while (code == 0 && from < to) {
        code = fabric_send(end->fabric, peer, bytes, fabric_fill(bytes, sender, from));
        cr_assert(code == 0 || code == -EAGAIN);
        from += code == 0;
    }
    return from;
}

static void send_one(struct end *end, int peer, uint8_t sender, uint32_t number)
{
    cr_assert_eq(send_some(end, peer, sender, number, number + 1), number + 1);
}

static void expect_one(struct end *end, uint8_t sender, uint32_t number)
{
    uint32_t next[4] = {0};
    next[sender] = number;
    while (take_all(end, next) == 0)
        wait_ring();
    cr_assert_eq(next[sender], number + 1);
}

/* Every end to every other, all at once, in one thread: what a queue does not take waits until it rings. */
static void fabric_exchange(int count, uint32_t frames)
{
    int peers[3][3];
    uint32_t sent[3][3] = {0}, next[3][4] = {0}, received = 0;
    const uint32_t all = (uint32_t)(count * (count - 1)) * frames;
    for (int i = 0; i < count; i++)
        open_end(&ends[i]);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++)
            peers[i][j] = i != j ? fabric_know(&ends[i], &ends[j]) : -1;
    while (received < all) {
        uint32_t moved = 0;
        for (int i = 0; i < count; i++) {
            for (int j = 0; j < count; j++) {
                uint32_t before = sent[i][j];
                if (i != j)
                    sent[i][j] = send_some(&ends[i], peers[i][j], (uint8_t)(i + 1), before, frames);
                moved += sent[i][j] - before;
            }
            uint32_t taken = take_all(&ends[i], next[i]);
            received += taken;
            moved += taken;
        }
        if (moved == 0 && received < all)
            wait_ring();
    }
}

/* Counters have no event: they are looked at until they say that this many were sent or not. */
static struct fabric_counts when_ended(struct end *end, uint64_t frames)
{
    struct fabric_counts counts;
    fabric_counts(end->fabric, &counts);
    for (int i = 0; i < DEADLINE * 1000 && counts.sent + counts.failed < frames; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        fabric_counts(end->fabric, &counts);
    }
    cr_assert_eq(counts.sent + counts.failed, frames);
    return counts;
}

static void exchange_and_count(int count, uint32_t frames)
{
    fabric_exchange(count, frames);
    for (int i = 0; i < count; i++) {
        uint64_t all = (uint64_t)(count - 1) * frames;
        struct fabric_counts counts = when_ended(&ends[i], all);
        cr_assert(counts.sent == all && counts.received == all && counts.dropped == 0);
    }
}

Test(fabric, two_ends)
{
    exchange_and_count(2, 10000);
}

Test(fabric, three_ends)
{
    exchange_and_count(3, 10000);
}

/* Unlike the default it takes only so many frames at a time, and lets short frames overtake long ones. */
Test(fabric, another_provider)
{
    long_ones = false;
    setenv("FI_OFI_RXM_TX_SIZE", "8", 1);
    setenv("FI_OFI_RXM_MSG_TX_SIZE", "4", 1);
    setting = "tcp;ofi_rxm:127.0.0.1";
    exchange_and_count(2, 10000);
}

/* How often the threads other than this one went to sleep. */
static unsigned long count_sleeps(void)
{
    unsigned long all = 0, own;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *one; (one = readdir(threads)) != NULL;) {
        char path[300], line[200];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", one->d_name);
        FILE *file = atoi(one->d_name) > 0 && atoi(one->d_name) != gettid() ? fopen(path, "r") : NULL;
        while (file != NULL && fgets(line, sizeof line, file) != NULL)
            all += sscanf(line, "voluntary_ctxt_switches: %lu", &own) == 1 ? own : 0;
        if (file != NULL)
            fclose(file);
    }
    closedir(threads);
    return all;
}

Test(fabric, who_has_nothing_to_do_sleeps)
{
    unsigned long before = 0, after = 1;
    exchange_and_count(2, 100);
    for (int second = 0; second < 10 && before != after; second++) {
        before = count_sleeps();
        sleep(1);
        after = count_sleeps();
    }
    cr_assert(before > 0 && before == after);
}

Test(fabric, what_cannot_be_sent)
{
    uint8_t bytes[FABRIC_FRAME_MAX + 1] = {0};
    open_end(&ends[0]);
    cr_assert_eq(fabric_send(ends[0].fabric, 0, bytes, 1), -ENOENT);
    cr_assert_eq(fabric_send(ends[0].fabric, -1, bytes, 1), -ENOENT);
    cr_assert_eq(fabric_send(ends[0].fabric, INT32_MAX, bytes, 1), -ENOENT);
    cr_assert_eq(fabric_send(ends[0].fabric, 0, bytes, 0), -EMSGSIZE);
    cr_assert_eq(fabric_send(ends[0].fabric, 0, bytes, sizeof bytes), -EMSGSIZE);
    cr_assert_eq(fabric_peer_remove(ends[0].fabric, 0), -ENOENT);
}

/* Its address is one where nobody is: a port that is taken, and at which nobody listens. A free one is another process's as
 * soon as that wants one. */
static struct end fabric_nobody(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct end nobody = {.address_size = sizeof(struct address)};
    socklen_t size = sizeof at;
    const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(taken >= 0 && bind(taken, (struct sockaddr *)&at, size) == 0);
    cr_assert_eq(getsockname(taken, (struct sockaddr *)&at, &size), 0);
    cr_assert_eq(address_of_socket((struct address *)nobody.address, (struct sockaddr *)&at), 0);
    taken_ports[taken_count++] = taken;
    return nobody;
}

/* Knows a peer by two addresses, in this order. */
static int fabric_know_list(struct end *end, const struct end *first, const struct end *second)
{
    uint8_t list[2 * FABRIC_ADDRESS_MAX];
    memcpy(list, first->address, first->address_size);
    memcpy(list + first->address_size, second->address, second->address_size);
    int peer = fabric_peer_add(end->fabric, list, first->address_size + second->address_size);
    cr_assert_geq(peer, 0);
    return peer;
}

/* The first end knows the second by an address where nobody is, and then by its own. */
static int fabric_know_after_nobody(void)
{
    open_end(&ends[0]);
    open_end(&ends[1]);
    const struct end nobody = fabric_nobody();
    return fabric_know_list(&ends[0], &nobody, &ends[1]);
}

Test(fabric, an_address_where_nobody_is_leads_to_the_next)
{
    int peer = fabric_know_after_nobody();
    send_one(&ends[0], peer, 1, 0);
    expect_one(&ends[1], 1, 0);
    send_one(&ends[0], peer, 1, 1);
    expect_one(&ends[1], 1, 1);
    struct fabric_counts counts = when_ended(&ends[0], 2);
    cr_assert(counts.sent == 2 && counts.failed == 0);
}

Test(fabric, an_address_of_somebody_else_is_left_when_told)
{
    open_end(&ends[0]);
    open_end(&ends[1]);
    open_end(&ends[2]);
    int peer = fabric_know_list(&ends[0], &ends[2], &ends[1]);
    send_one(&ends[0], peer, 1, 0);
    expect_one(&ends[2], 1, 0);
    fabric_peer_turn(ends[0].fabric, peer);
    send_one(&ends[0], peer, 1, 1);
    expect_one(&ends[1], 1, 1);
    fabric_peer_turn(ends[0].fabric, peer);
    send_one(&ends[0], peer, 1, 2);
    expect_one(&ends[2], 1, 2);
    fabric_peer_keep(ends[0].fabric, peer);
    fabric_peer_turn(ends[0].fabric, peer);
    send_one(&ends[0], peer, 1, 3);
    expect_one(&ends[1], 1, 3);
    fabric_peer_turn(ends[0].fabric, 99);
    fabric_peer_keep(ends[0].fabric, 99);
}

Test(fabric, an_address_that_is_kept_is_waited_for)
{
    int peer = fabric_know_after_nobody();
    fabric_peer_keep(ends[0].fabric, peer);
    send_one(&ends[0], peer, 1, 0);
    cr_assert_eq(when_ended(&ends[0], 1).failed, 1);
}

/* Without an address, where there is a network: sockets of IPv6 that serve IPv4, too. */
Test(fabric, addresses_of_all_networks_are_one_list)
{
    setting = "tcp";
    open_end(&ends[0]);
    open_end(&ends[1]);
    cr_assert_eq(ends[0].address_size % sizeof(struct address), 0);
    for (size_t at = 0; at < ends[1].address_size; at += sizeof(struct address)) {
        struct address own[ADDRESSES_MAX];
        int peer = fabric_peer_add(ends[0].fabric, ends[1].address + at, sizeof *own);
        cr_assert_geq(peer, 0);
        send_one(&ends[0], peer, 1, (uint32_t)at);
        expect_one(&ends[1], 1, (uint32_t)at);
    }
}

/* Its socket reaches IPv4 alone. */
Test(fabric, what_cannot_be_reached_of_a_list_is_left_out)
{
    struct address list[2];
    open_end(&ends[0]);
    open_end(&ends[1]);
    memset(&list[0], 0xfd, sizeof list[0]);
    memcpy(&list[1], ends[1].address, sizeof list[1]);
    cr_assert_eq(fabric_peer_add(ends[0].fabric, (const uint8_t *)list, sizeof list[0]), -EINVAL);
    int peer = fabric_peer_add(ends[0].fabric, (const uint8_t *)list, sizeof list);
    cr_assert_geq(peer, 0);
    send_one(&ends[0], peer, 1, 0);
    expect_one(&ends[1], 1, 0);
}

Test(fabric, what_is_no_address)
{
    uint8_t bytes[FABRIC_ADDRESS_MAX] = {0};
    size_t small = 3;
    open_end(&ends[0]);
    cr_assert_eq(fabric_address(ends[0].fabric, bytes, &small), -ENOBUFS);
    for (size_t size = 0; size <= sizeof bytes; size++)
        cr_assert_eq(fabric_peer_add(ends[0].fabric, bytes, size), -EINVAL);
    static const uint8_t many[(ADDRESSES_MAX + 1) * sizeof(struct address)];
    cr_assert_eq(fabric_peer_add(ends[0].fabric, many, sizeof many), -EINVAL);
    cr_assert_eq(fabric_peer_add(ends[0].fabric, ends[0].address, ends[0].address_size - 1), -EINVAL);
}

Test(fabric, settings)
{
    static const struct {
        const char *setting;
        int code;
    } cases[] = {{"tcp:", -EINVAL},
                 {":lo", -EINVAL},
                 {"carrier-pigeon", -ENODEV},
                 {"tcp:no-such-if", -ENODEV},
                 {"tcp:198.51.100.1", -EADDRNOTAVAIL},
                 {"tcp:lo", 0},
                 {"tcp", 0},
                 {"", 0},
                 {NULL, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fabric *fabric = NULL;
        cr_assert_eq(fabric_open(&fabric, cases[i].setting, fabric_ring, &rung), cases[i].code, "case %zu", i);
        cr_assert_eq(fabric == NULL, cases[i].code != 0);
        fabric_close(fabric);
    }
}

static int know_nobody(struct end *end)
{
    const struct end nobody = fabric_nobody();
    return fabric_know(end, &nobody);
}

Test(fabric, nobody_there_is_counted_and_hinders_nobody)
{
    struct fabric_counts counts;
    open_end(&ends[0]);
    open_end(&ends[1]);
    int nobody = know_nobody(&ends[0]), other = fabric_know(&ends[0], &ends[1]);
    send_one(&ends[0], nobody, 1, 0);
    send_one(&ends[0], other, 1, 1);
    expect_one(&ends[1], 1, 1);
    counts = when_ended(&ends[0], 2);
    cr_assert(counts.sent == 1 && counts.failed == 1);
    send_one(&ends[0], nobody, 1, 2);
    counts = when_ended(&ends[0], 3);
    cr_assert(counts.sent == 1 && counts.failed == 2, "and it was tried again");
}

Test(fabric, what_waits_for_a_peer_is_bounded)
{
    static const uint8_t bytes[FABRIC_FRAME_MAX];
    open_end(&ends[0]);
    int few = know_nobody(&ends[0]), many = know_nobody(&ends[0]);
    for (unsigned i = 0; i < FABRIC_QUEUE_BYTES / sizeof bytes; i++)
        cr_assert_eq(fabric_send(ends[0].fabric, few, bytes, sizeof bytes), 0);
    cr_assert_eq(fabric_send(ends[0].fabric, few, bytes, 1), -EAGAIN);
    for (unsigned i = 0; i < FABRIC_QUEUE_FRAMES; i++)
        cr_assert_eq(fabric_send(ends[0].fabric, many, bytes, 1), 0);
    cr_assert_eq(fabric_send(ends[0].fabric, many, bytes, 1), -EAGAIN);
    wait_ring();
    cr_assert_eq(when_ended(&ends[0], FABRIC_QUEUE_BYTES / sizeof bytes + FABRIC_QUEUE_FRAMES).sent, 0);
    cr_assert_eq(fabric_send(ends[0].fabric, few, bytes, 1), 0);
    cr_assert_eq(fabric_send(ends[0].fabric, many, bytes, 1), 0);
}

Test(fabric, who_takes_nothing_stops_the_sender_and_nothing_is_lost)
{
    static const uint8_t bytes[FABRIC_FRAME_MAX] = {1};
    const uint8_t *held[FABRIC_BUFFERS + 1], *more;
    size_t size;
    unsigned taken = 0;
    uint64_t accepted = 0;
    open_end(&ends[0]);
    open_end(&ends[1]);
    int peer = fabric_know(&ends[0], &ends[1]);
    while (taken < FABRIC_BUFFERS) {
        accepted += fabric_send(ends[0].fabric, peer, bytes, sizeof bytes) == 0;
        if (fabric_next(ends[1].fabric, &held[taken], &size) == 1)
            taken++;
    }
    while (fabric_send(ends[0].fabric, peer, bytes, sizeof bytes) == 0)
        accepted++;
    cr_assert_eq(fabric_next(ends[1].fabric, &more, &size), 0, "no buffer is left");
    for (unsigned i = 0; i < taken; i++)
        fabric_release(ends[1].fabric, held[i]);
    for (; taken < accepted; taken++) {
        while (fabric_next(ends[1].fabric, &more, &size) == 0)
            wait_ring();
        cr_assert_eq(size, sizeof bytes);
        fabric_release(ends[1].fabric, more);
    }
    cr_assert_eq(when_ended(&ends[0], accepted).sent, accepted);
}

Test(fabric, a_peer_that_comes_back_remote)
{
    open_end(&ends[0]);
    open_end(&ends[1]);
    int there = fabric_know(&ends[0], &ends[1]), here = fabric_know(&ends[1], &ends[0]);
    send_one(&ends[0], there, 1, 1);
    expect_one(&ends[1], 1, 1);
    send_one(&ends[1], here, 2, 1);
    expect_one(&ends[0], 2, 1);
    close_end(&ends[1]);
    open_end(&ends[1]);
    send_one(&ends[0], there, 1, 2);
    cr_assert_eq(fabric_peer_remove(ends[0].fabric, there), 0);
    cr_assert_eq(fabric_send(ends[0].fabric, there, ends[0].address, 1), -ENOENT);
    there = fabric_know(&ends[0], &ends[1]);
    here = fabric_know(&ends[1], &ends[0]);
    send_one(&ends[0], there, 1, 3);
    expect_one(&ends[1], 1, 3);
    send_one(&ends[1], here, 2, 4);
    expect_one(&ends[0], 2, 4);
}

Test(fabric, many_peers_come_and_go)
{
    open_end(&ends[0]);
    open_end(&ends[1]);
    for (uint32_t i = 0; i < 3 * FABRIC_PEERS_MAX; i++) {
        int peer = fabric_know(&ends[0], &ends[1]);
        if (i % 1000 == 0) {
            send_one(&ends[0], peer, 1, i);
            expect_one(&ends[1], 1, i);
        }
        cr_assert_eq(fabric_peer_remove(ends[0].fabric, peer), 0);
    }
}

/* Each while its thread is about to fall asleep: libfabric loses a signal that comes then. */
Test(fabric, closing_never_waits_for_ever)
{
    for (int i = 0; i < 3000; i++) {
        alarm(DEADLINE); /* of each: all together take as long as the machine is busy */
        open_end(&ends[0]);
        for (int pause = 0; pause < i % 1000 * 100; pause++)
            __asm__ volatile("" ::: "memory");
        close_end(&ends[0]);
    }
    alarm(0);
}

Test(fabric, closing_while_frames_wait)
{
    static const uint8_t bytes[FABRIC_FRAME_MAX];
    open_end(&ends[0]);
    open_end(&ends[1]);
    int peer = fabric_know(&ends[0], &ends[1]), nobody = know_nobody(&ends[0]);
    while (fabric_send(ends[0].fabric, nobody, bytes, 1000) == 0)
        ;
    send_one(&ends[0], peer, 1, 1);
    expect_one(&ends[1], 1, 1);
    for (int i = 0; i < 300; i++)
        fabric_send(ends[0].fabric, peer, bytes, sizeof bytes);
    close_end(&ends[0]);
}

/* What a stranger says who found the port. */
static void fabric_speak(const struct end *to, const uint8_t *bytes, size_t size)
{
    struct sockaddr_storage socket_address;
    struct address address;
    cr_assert_eq(to->address_size, sizeof address);
    memcpy(&address, to->address, sizeof address);
    socklen_t length = address_to_socket(&address, AF_INET, &socket_address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&socket_address, length), 0);
    cr_assert_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
    close(fd);
}

Test(fabric, strangers_are_survived)
{
    uint8_t bytes[4096];
    open_end(&ends[0]);
    open_end(&ends[1]);
    int peer = fabric_know(&ends[0], &ends[1]);
    for (unsigned i = 0; i < 200; i++) {
        for (size_t j = 0; j < sizeof bytes; j++)
            bytes[j] = (uint8_t)(i < 3 ? i * 127 : (i * 2654435761u + j * 40503u) >> 7);
        fabric_speak(&ends[1], bytes, i * 20 + 1);
    }
    send_one(&ends[0], peer, 1, 1);
    expect_one(&ends[1], 1, 1);
}
