/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Items between daemons, over the loopback: each once, in order, and to nobody without the key. */

#include "peer/peers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "peer/fabric.h"
#include "peer/pack.h"
#include "place.h"

#define ENDS 3
#define PATIENCE (30 * CLOCK_SECOND)

static struct peers *ends[ENDS];
static struct frame_self selves[ENDS];

static void peers_ring(void *context)
{
}

static void open_end(int i)
{
    selves[i] = (struct frame_self){.session = 7, .epoch = 1, .instance = 100 + (uint64_t)i, .member = (uint16_t)(i + 1)};
    memset(selves[i].key, 'k', sizeof selves[i].key);
    cr_assert_eq(peers_create(&ends[i]), 0);
    cr_assert_not(peers_is_open(ends[i]));
    cr_assert_eq(peers_open(ends[i], "tcp:127.0.0.1", peers_ring, NULL), 0);
    peers_set_self(ends[i], &selves[i]);
}

static void peers_introduce(int who, int to)
{
    uint8_t address[FABRIC_ADDRESS_MAX];
    size_t size = sizeof address;
    cr_assert_eq(peers_address(ends[who], address, &size), 0);
    cr_assert_eq(peers_add(ends[to], selves[who].member, selves[who].instance, address, size), 0);
}

static void peers_begin(void)
{
    for (int i = 0; i < ENDS; i++)
        open_end(i);
    peers_introduce(0, 1);
    peers_introduce(1, 0);
}

static void peers_end(void)
{
    for (int i = 0; i < ENDS; i++)
        peers_destroy(ends[i]);
}

TestSuite(peers, .init = peers_begin, .fini = peers_end, .timeout = 120);

/* Item N is as long as this and holds N over and over. */
static uint32_t size_of(uint32_t number)
{
    return number * 2654435761u >> 20;
}

static struct frame_item item_of(uint32_t number)
{
    static uint8_t bytes[4096];
    memset(bytes, (int)number, sizeof bytes);
    return (struct frame_item){.kind = 3, .flags = 4, .qp = number, .client = 5, .bytes = bytes, .size = size_of(number)};
}

static void test_peers_put(int from, uint16_t to, uint32_t number)
{
    const struct frame_item item = item_of(number);
    cr_assert_eq(peers_put(ends[from], to, &item), 0);
}

static void assert_item(const struct frame_item *item, uint32_t number)
{
    cr_assert_eq(item->qp, number, "%u, not %u", item->qp, number);
    cr_assert(item->kind == 3 && item->flags == 4 && item->client == 5 && item->size == size_of(number));
    for (uint32_t i = 0; i < item->size; i++)
        cr_assert_eq(item->bytes[i], (uint8_t)number, "byte %u of %u", i, number);
}

/* Takes items at one end, while both flush, until it had `count` of them or nothing came for so long. */
static uint32_t peers_take(int at, uint32_t first, uint32_t count, uint64_t patience)
{
    struct frame_item item;
    uint16_t member;
    uint32_t taken = 0;
    for (uint64_t until = clock_monotonic() + patience; taken < count && clock_monotonic() < until;) {
        for (int got; taken < count && (got = peers_next(ends[at], &member, &item)) != 0;) {
            cr_assert_eq(got, 1);
            assert_item(&item, first + taken++);
        }
        for (int i = 0; i < ENDS; i++)
            peers_flush(ends[i]);
        for (int i = 0; i < ENDS; i++)
            if (i != at)
                peers_next(ends[i], &member, &item);
        usleep(200);
    }
    return taken;
}

Test(peers, items_come_once_and_in_order)
{
    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t i = 0; i < 300; i++)
            test_peers_put(0, 2, round * 300 + i);
        cr_assert_eq(peers_take(1, round * 300, 300, PATIENCE), 300, "round %u", round);
    }
    cr_assert_lt(peers_counts(ends[0])->frames_sent, 400, "many share a frame");
    cr_assert_eq(peers_counts(ends[1])->dropped, 0);
}

/* Each knows the other by an address of a third, which takes the frames and drops them, and by the right one. */
Test(peers, an_address_that_leads_to_another_daemon_is_left)
{
    uint8_t wrong[FABRIC_ADDRESS_MAX], list[2 * FABRIC_ADDRESS_MAX];
    size_t wrong_size = sizeof wrong;
    cr_assert_eq(peers_address(ends[2], wrong, &wrong_size), 0);
    for (int who = 0; who < 2; who++) {
        size_t size = sizeof list - wrong_size;
        memcpy(list, wrong, wrong_size);
        cr_assert_eq(peers_address(ends[who], list + wrong_size, &size), 0);
        peers_remove(ends[1 - who], selves[who].member);
        cr_assert_eq(peers_add(ends[1 - who], selves[who].member, selves[who].instance, list, wrong_size + size), 0);
    }
    test_peers_put(0, 2, 1);
    test_peers_put(1, 1, 1);
    bool has_come[2] = {false};
    for (uint64_t until = clock_monotonic() + PATIENCE; !(has_come[0] && has_come[1]) && clock_monotonic() < until;) {
        struct frame_item item;
        uint16_t member;
        for (int i = 0; i < ENDS; i++) {
            bool came = peers_next(ends[i], &member, &item) == 1;
            cr_assert(!came || i < 2);
            has_come[i & 1] |= came;
            peers_flush(ends[i]);
        }
        usleep(200);
    }
    cr_assert(has_come[0] && has_come[1]);
    cr_assert_gt(peers_counts(ends[0])->sent_again + peers_counts(ends[1])->sent_again, 0);
    cr_assert_gt(peers_counts(ends[2])->dropped, 0);
}

Test(peers, what_is_acknowledged_is_forgotten)
{
    struct frame_item item;
    uint16_t member;
    test_peers_put(0, 2, 1);
    cr_assert_not(peers_has_heard(ends[0], 2, PATIENCE));
    cr_assert_eq(peers_take(1, 1, 1, PATIENCE), 1);
    for (uint64_t until = clock_monotonic() + PATIENCE; peers_wait(ends[0]) && clock_monotonic() < until;) {
        peers_flush(ends[1]);
        cr_assert_eq(peers_next(ends[0], &member, &item), 0);
        peers_flush(ends[0]);
        usleep(1000);
    }
    cr_assert_not(peers_wait(ends[0]), "it is told within a second");
    cr_assert_not(peers_wait(ends[1]));
    cr_assert(peers_has_heard(ends[0], 2, PATIENCE) && !peers_has_heard(ends[0], 2, 0));
    cr_assert_not(peers_has_heard(ends[1], 1, PATIENCE), "it was told nothing that it could acknowledge");
    cr_assert_not(peers_has_heard(ends[0], 3, PATIENCE), "nobody");
}

Test(peers, what_somebody_waits_for_is_acknowledged_at_once)
{
    for (uint32_t number = 1; number <= 2; number++) { /* the first one is, anyhow, by the one that was just introduced */
        test_peers_put(0, 2, number);
        cr_assert_eq(peers_take(1, number, 1, PATIENCE), 1);
    }
    peers_hasten(ends[1], true);
    peers_flush(ends[1]);
    cr_assert_not(peers_wait(ends[1]));
}

Test(peers, what_goes_out_says_what_came_in)
{
    struct frame_item item;
    uint16_t member;
    for (uint32_t number = 0; number < 100; number++) { /* a question, and its answer */
        test_peers_put(0, 2, number);
        cr_assert_eq(peers_take(1, number, 1, PATIENCE), 1);
        test_peers_put(1, 1, number);
        cr_assert_eq(peers_take(0, number, 1, PATIENCE), 1);
        cr_assert_eq(peers_next(ends[0], &member, &item), 0);
    }
    cr_assert_leq(peers_counts(ends[0])->frames_sent + peers_counts(ends[1])->frames_sent, 204,
                  "200, and what is said to a member that was just introduced");
}

Test(peers, what_is_put_while_frames_are_under_way_shares_one)
{
    peers_flush(ends[1]); /* to the one that was just introduced */
    for (uint32_t number = 0; number < 20; number++) {
        test_peers_put(0, 2, number);
        peers_flush(ends[0]);
    }
    cr_assert_eq(peers_counts(ends[0])->frames_sent, 4);
    cr_assert_eq(peers_take(1, 0, 4, PATIENCE), 4);
    cr_assert_eq(peers_counts(ends[1])->frames_sent, 2, "that there is room again");
    cr_assert_eq(peers_take(1, 4, 16, PATIENCE), 16);
    cr_assert_eq(peers_counts(ends[0])->frames_sent, 5);
}

static void put_late(uint32_t number)
{
    const struct frame_item item = item_of(number);
    cr_assert_eq(peers_put_late(ends[0], 2, &item), 0);
    peers_flush(ends[0]);
}

static uint64_t frames_from(int i)
{
    return peers_counts(ends[i])->frames_sent;
}

Test(peers, what_nobody_waits_for_travels_with_what_somebody_does)
{
    test_peers_put(0, 2, 0); /* to the one that was just introduced something is said anyhow */
    cr_assert_eq(peers_take(1, 0, 1, PATIENCE), 1);
    const uint64_t before = frames_from(0);
    for (uint32_t number = 1; number < 10; number++)
        put_late(number);
    cr_assert_eq(frames_from(0), before);
    cr_assert(peers_wait(ends[0]) && !peers_is_idle(ends[0], 2), "time has to pass");
    test_peers_put(0, 2, 10);
    cr_assert_eq(peers_take(1, 1, 10, PATIENCE), 10, "in order");
    cr_assert_eq(frames_from(0), before + 1);
}

Test(peers, a_frame_has_arrived_once_it_is_acknowledged)
{
    test_peers_put(0, 2, 0);
    const uint64_t first = peers_frame(ends[0], 2);
    cr_assert_not(peers_has_got(ends[0], 2, first));
    cr_assert_eq(peers_take(1, 0, 1, PATIENCE), 1);
    put_late(1);
    const uint64_t second = peers_frame(ends[0], 2);
    cr_assert(second > first && !peers_has_got(ends[0], 2, second));
    cr_assert_eq(peers_take(1, 1, 1, PATIENCE), 1);
    for (uint64_t until = clock_monotonic() + PATIENCE; !peers_has_got(ends[0], 2, second) && clock_monotonic() < until;)
        peers_take(0, 0, 1, CLOCK_MILLISECOND);
    cr_assert(peers_has_got(ends[0], 2, first) && peers_has_got(ends[0], 2, second));
    cr_assert(peers_has_got(ends[0], 7, peers_frame(ends[0], 7)), "of one that is not known nothing is to be said");
}

Test(peers, what_nobody_waits_for_goes_out_when_it_is_time_or_called_for)
{
    test_peers_put(0, 2, 0);
    cr_assert_eq(peers_take(1, 0, 1, PATIENCE), 1);
    const uint64_t before = frames_from(0);
    put_late(1);
    cr_assert_eq(peers_take(1, 1, 1, PATIENCE), 1, "in time");
    put_late(2);
    cr_assert_eq(frames_from(0), before + 1);
    peers_urge(ends[0], 2);
    peers_flush(ends[0]);
    cr_assert_eq(frames_from(0), before + 2, "called for");
    peers_urge(ends[0], 2);
    peers_flush(ends[0]);
    cr_assert_eq(frames_from(0), before + 2, "there is nothing");
    peers_urge(ends[0], 3); /* nobody */
    peers_hasten(ends[0], true);
    put_late(3);
    cr_assert_eq(frames_from(0), before + 3, "somebody waits until it is idle");
    cr_assert_eq(peers_take(1, 2, 2, PATIENCE), 2);
}

Test(peers, who_is_no_member_is_not_reached)
{
    const struct frame_item item = {.kind = 1};
    cr_assert_eq(peers_put(ends[0], 3, &item), -EHOSTUNREACH);
    cr_assert(peers_knows(ends[0], 2) && !peers_knows(ends[0], 3));
    peers_remove(ends[0], 2);
    cr_assert_eq(peers_put(ends[0], 2, &item), -EHOSTUNREACH);
    peers_remove(ends[0], 2);
}

/* A stranger knows the address and all numbers, but not the key. */
Test(peers, without_the_key_nothing_is_said)
{
    struct frame_item item;
    uint16_t member;
    selves[2].member = 1;
    selves[2].instance = selves[0].instance;
    memset(selves[2].key, 'x', sizeof selves[2].key);
    peers_set_self(ends[2], &selves[2]);
    peers_introduce(1, 2);
    test_peers_put(2, 2, 1);
    for (uint64_t until = clock_monotonic() + PATIENCE; peers_counts(ends[1])->dropped == 0 && clock_monotonic() < until;
         usleep(1000)) {
        peers_flush(ends[2]);
        cr_assert_eq(peers_next(ends[1], &member, &item), 0);
    }
    cr_assert_geq(peers_counts(ends[1])->dropped, 1);
    test_peers_put(0, 2, 2);
    cr_assert_eq(peers_take(1, 2, 1, PATIENCE), 1, "and others are heard as before");
}

/* As the first end would send it. */
static void test_peers_send(struct fabric *fabric, int peer, uint64_t sequence, const void *payload, uint32_t size)
{
    static uint8_t sealed[FRAME_MAX];
    const struct frame frame = {.receiver = selves[1].member,
                                .receiver_instance = selves[1].instance,
                                .sequence = sequence,
                                .payload = payload,
                                .size = size};
    const int length = frame_seal(sealed, sizeof sealed, &frame, &selves[0]);
    cr_assert_gt(length, 0);
    cr_assert_eq(fabric_send(fabric, peer, sealed, (size_t)length), 0);
}

/* A member's frame, so it is acknowledged, or it would come for ever; but nothing of it is handed out. */
Test(peers, a_frame_with_an_item_that_cannot_be_read_is_passed_over)
{
    static uint8_t payload[FRAME_PAYLOAD_MAX], address[FABRIC_ADDRESS_MAX];
    static struct pack pack = {.bytes = payload};
    const struct frame_item put = item_of(1);
    struct fabric *fabric;
    size_t size = sizeof address;
    cr_assert_eq(fabric_open(&fabric, "tcp:127.0.0.1", peers_ring, NULL), 0);
    cr_assert_eq(peers_address(ends[1], address, &size), 0);
    const int peer = fabric_peer_add(fabric, address, size);
    cr_assert_geq(peer, 0);
    cr_assert_eq(pack_add(&pack, &put), 0);
    payload[pack.size] = 0xff;
    test_peers_send(fabric, peer, 1, payload, pack.size + 1);
    test_peers_send(fabric, peer, 2, payload, pack.size);
    cr_assert_eq(peers_take(1, 1, 1, PATIENCE), 1);
    cr_assert_eq(peers_counts(ends[1])->dropped, 1);
    fabric_close(fabric);
}

/* A frame of a newer epoch from the first end, until the second one wants the session to be looked at. */
static void test_peers_put_newer(void)
{
    struct frame_item item;
    uint16_t member;
    int got = 0;
    selves[0].epoch = 2;
    peers_set_self(ends[0], &selves[0]);
    test_peers_put(0, 2, 1);
    for (uint64_t until = clock_monotonic() + PATIENCE; got == 0 && clock_monotonic() < until; usleep(1000)) {
        peers_flush(ends[0]);
        got = peers_next(ends[1], &member, &item);
    }
    cr_assert_eq(got, PEERS_NEWER);
}

/* Of an unknown member, or a newer epoch, the session knows more: it is looked at, then the frame is taken.
 */
Test(peers, the_session_is_looked_at_when_somebody_is_prefetch)
{
    test_peers_put_newer();
    selves[1].epoch = 2;
    peers_set_self(ends[1], &selves[1]);
    cr_assert_eq(peers_take(1, 1, 1, PATIENCE), 1);
}

/* What was made in an epoch that is not known here is not acted on: it comes again once it is. */
Test(peers, a_newer_epoch_is_refused_while_the_session_cannot_be_read)
{
    struct frame_item item;
    uint16_t member;
    test_peers_put_newer();
    cr_assert_eq(peers_next(ends[1], &member, &item), 0);
    cr_assert_eq(peers_counts(ends[1])->dropped, 1);
    selves[1].epoch = 2;
    peers_set_self(ends[1], &selves[1]);
    cr_assert_eq(peers_take(1, 1, 1, PATIENCE), 1);
}

/* What was refused because its sender was after goes out again once that knows the epoch. */
Test(peers, an_older_epoch_is_refused_and_nothing_is_lost)
{
    struct frame_item item;
    uint16_t member;
    selves[1].epoch = 2;
    peers_set_self(ends[1], &selves[1]);
    test_peers_put(0, 2, 1);
    test_peers_put(0, 2, 2);
    for (uint64_t until = clock_monotonic() + PATIENCE; peers_counts(ends[1])->dropped == 0 && clock_monotonic() < until;
         usleep(1000)) {
        peers_flush(ends[0]);
        cr_assert_eq(peers_next(ends[1], &member, &item), 0);
    }
    selves[0].epoch = 2;
    peers_set_self(ends[0], &selves[0]);
    cr_assert_eq(peers_take(1, 1, 2, PATIENCE), 2);
}

/* Until so many frames that came there were refused. */
static void peers_refuse(int at, uint64_t count, int from)
{
    struct frame_item item;
    uint16_t member;
    for (uint64_t until = clock_monotonic() + PATIENCE; peers_counts(ends[at])->dropped < count && clock_monotonic() < until;
         usleep(200)) {
        peers_flush(ends[from]);
        cr_assert_neq(peers_next(ends[at], &member, &item), 1);
    }
    cr_assert_eq(peers_counts(ends[at])->dropped, count);
}

/* A frame is lost since its receiver does not know yet who sent it; one that follows is refused for want of
 * it. Once the first goes again, nothing that is sent then must find another one missing. */
Test(peers, what_follows_a_lost_frame_goes_again_with_it)
{
    peers_introduce(1, 2);
    test_peers_put(2, 2, 0);
    peers_refuse(1, 1, 2);
    peers_introduce(2, 1);
    usleep(500000); /* else both were due at the same time anyway */
    test_peers_put(2, 2, 1);
    peers_refuse(1, 2, 2);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(peers_take(1, i, 1, PATIENCE), 1);
        test_peers_put(2, 2, i + 2);
    }
    cr_assert_eq(peers_take(1, 3, 2, PATIENCE), 2);
    cr_assert_eq(peers_counts(ends[1])->dropped, 2);
}
