/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "peer/frame.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ALICE = 1, BOB = 2 };

static struct frame_self self_of(uint16_t member)
{
    struct frame_self self = {.session = 0x5e551017, .epoch = 7, .instance = 0x1111ull * member, .member = member};
    for (int i = 0; i < FRAME_KEY; i++)
        self.key[i] = (uint8_t)i;
    return self;
}

static struct frame to_bob(const void *payload, uint32_t size)
{
    return (struct frame){
        .receiver = BOB, .receiver_instance = 0x2222, .sequence = 9, .received = 3, .payload = payload, .size = size};
}

static int test_frame_seal(uint8_t to[FRAME_MAX], const void *payload, uint32_t size)
{
    struct frame_self alice = self_of(ALICE);
    struct frame frame = to_bob(payload, size);
    return frame_seal(to, FRAME_MAX, &frame, &alice);
}

static int bob_opens(struct frame *frame, const uint8_t *bytes, size_t size)
{
    struct frame_self bob = self_of(BOB);
    return frame_open(frame, bytes, size, &bob);
}

static uint8_t sealed[FRAME_MAX], payload[FRAME_MAX];

static void fill_payload(void)
{
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 7 + (i >> 8));
}

TestSuite(frame, .init = fill_payload);

Test(frame, what_is_sealed_opens)
{
    const uint32_t sizes[] = {0, 1, 63, 1000, FRAME_PAYLOAD_MAX};
    struct frame frame;
    cr_assert_eq(frame_start(), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int size = test_frame_seal(sealed, payload, sizes[i]);
        cr_assert_eq(size, (int)(FRAME_HEADER + sizes[i]));
        cr_assert_eq(bob_opens(&frame, sealed, (size_t)size), 0);
        cr_assert(frame.sender == ALICE && frame.receiver == BOB && frame.sequence == 9);
        cr_assert_eq(frame.received, 3);
        cr_assert(frame.sender_instance == 0x1111 && frame.receiver_instance == 0x2222 && frame.epoch == 7);
        cr_assert(frame.size == sizes[i] && memcmp(frame.payload, payload, sizes[i]) == 0);
    }
}

Test(frame, a_payload_may_lie_where_it_will_travel)
{
    struct frame frame;
    memcpy(sealed + FRAME_HEADER, payload, 500);
    int size = test_frame_seal(sealed, sealed + FRAME_HEADER, 500);
    cr_assert(bob_opens(&frame, sealed, (size_t)size) == 0 && memcmp(frame.payload, payload, 500) == 0);
}

/* Computed by another implementation of BLAKE2b than libsodium's. */
Test(frame, the_bytes_are_those_of_the_document)
{
    static const uint8_t expected[FRAME_HEADER] = {
        0x73, 0x68, 0x66, 0x72, 0x04, 0x00, 0x00, 0x00, 0x17, 0x10, 0x55, 0x5e, 0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x11, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x22, 0x22, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x02, 0x00,
        0x12, 0x00, 0x00, 0x00, 0x4d, 0xb4, 0x29, 0xdf, 0x27, 0x4c, 0x5a, 0xf5, 0x7a, 0x91, 0xad, 0xa5, 0x12, 0xcf, 0xe6, 0xdd};
    static const uint8_t items[] = {0x4e, 8, 3, 5, 6, 3, 'o', 'n', 'e', 0x48, 0, 0x48, 5, 't', 'h', 'r', 'e', 'e'};
    cr_assert_eq(test_frame_seal(sealed, items, sizeof items), FRAME_HEADER + sizeof items);
    cr_assert_arr_eq(sealed, expected, FRAME_HEADER);
}

Test(frame, every_beginning_and_every_flipped_bit_is_refused)
{
    static const struct frame none;
    struct frame frame;
    size_t size = (size_t)test_frame_seal(sealed, payload, 300);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = malloc(cut > 0 ? cut : 1); /* of exactly this size, for a sanitizer */
        memcpy(copy, sealed, cut);
        cr_assert_eq(bob_opens(&frame, copy, cut), -EBADMSG);
        cr_assert_eq(memcmp(&frame, &none, sizeof frame), 0);
        free(copy);
    }
    cr_assert_eq(bob_opens(&frame, sealed, size + 1), -EBADMSG);
    for (size_t bit = 0; bit < size * 8; bit++) {
        sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cr_assert_lt(bob_opens(&frame, sealed, size), 0, "bit %zu", bit);
        cr_assert_eq(memcmp(&frame, &none, sizeof frame), 0);
        sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    cr_assert_eq(bob_opens(&frame, sealed, size), 0);
}

Test(frame, who_it_is_not_for_refuses_it)
{
    struct frame frame;
    size_t size = (size_t)test_frame_seal(sealed, payload, 300);
    struct frame_self bob = self_of(BOB);
    bob.key[31] ^= 1;
    cr_assert_eq(frame_open(&frame, sealed, size, &bob), -EACCES, "another key");
    bob = self_of(BOB);
    bob.session++;
    cr_assert_eq(frame_open(&frame, sealed, size, &bob), -ESTALE, "another session");
    bob = self_of(BOB);
    bob.member = 3;
    cr_assert_eq(frame_open(&frame, sealed, size, &bob), -EHOSTUNREACH, "another member");
    bob = self_of(BOB);
    bob.instance++;
    cr_assert_eq(frame_open(&frame, sealed, size, &bob), -EHOSTUNREACH, "the next daemon of this member");
    bob = self_of(ALICE);
    cr_assert_eq(frame_open(&frame, sealed, size, &bob), -EHOSTUNREACH, "sent back");
}

Test(frame, epochs)
{
    struct frame frame;
    size_t size = (size_t)test_frame_seal(sealed, payload, 300);
    struct frame_self bob = self_of(BOB);
    bob.epoch = 8;
    cr_assert_eq(frame_open(&frame, sealed, size, &bob), -ESTALE);
    bob.epoch = 6;
    cr_assert_eq(frame_open(&frame, sealed, size, &bob), FRAME_NEWER);
    cr_assert(frame.epoch == 7 && frame.size == 300);
    bob.key[0] ^= 1;
    cr_assert_eq(frame_open(&frame, sealed, size, &bob), -EACCES, "a stranger without the key announces no epoch");
}

Test(frame, versions_and_magic)
{
    struct frame frame;
    size_t size = (size_t)test_frame_seal(sealed, payload, 10);
    sealed[4]++;
    cr_assert_eq(bob_opens(&frame, sealed, size), -EPROTO);
    cr_assert_eq(bob_opens(&frame, sealed, size - 1), -EPROTO, "the length of another version is not ours");
    sealed[0]++;
    cr_assert_eq(bob_opens(&frame, sealed, size), -EBADMSG);
}

Test(frame, lengths_out_of_range)
{
    static uint8_t big[FRAME_MAX + 1];
    struct frame_self alice = self_of(ALICE);
    struct frame frame = to_bob(payload, FRAME_PAYLOAD_MAX + 1);
    cr_assert_eq(frame_seal(big, sizeof big, &frame, &alice), -EMSGSIZE);
    frame.size = UINT32_MAX;
    cr_assert_eq(frame_seal(big, sizeof big, &frame, &alice), -EMSGSIZE);
    frame.size = 100;
    cr_assert_eq(frame_seal(big, FRAME_HEADER + 99, &frame, &alice), -EMSGSIZE);
    cr_assert_eq(frame_seal(big, 0, &frame, &alice), -EMSGSIZE);
    memcpy(big, sealed, (size_t)test_frame_seal(sealed, payload, FRAME_PAYLOAD_MAX));
    const uint32_t size = FRAME_PAYLOAD_MAX + 1;
    memcpy(big + 60, &size, sizeof size);
    cr_assert_eq(bob_opens(&frame, big, sizeof big), -EBADMSG);
}
