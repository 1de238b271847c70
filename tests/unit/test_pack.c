/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "peer/pack.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t payload[FRAME_PAYLOAD_MAX], unpacked[PACK_UNPACKED_MAX], noise[FRAME_MAX];
static struct pack pack = {.bytes = payload};
static struct pack_items items = {.bytes = unpacked};
static unsigned seed = 1;

static uint32_t test_pack_below(uint32_t limit)
{
    return (uint32_t)rand_r(&seed) % limit;
}

static void test_pack_fill_noise(void)
{
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)test_pack_below(256);
}

TestSuite(pack, .init = test_pack_fill_noise, .timeout = 120);

static void test_pack_add(const struct frame_item *item)
{
    cr_assert_eq(pack_add(&pack, item), 0);
}

static struct frame_item text_item(const char *text)
{
    return (struct frame_item){
        .client = 4, .qp = 3, .kind = 5, .flags = 6, .size = (uint32_t)strlen(text), .bytes = (const uint8_t *)text};
}

static void assert_next(const struct frame_item *expected)
{
    struct frame_item item;
    cr_assert_eq(pack_next(&items, &item), 1);
    cr_assert(item.client == expected->client && item.qp == expected->qp && item.kind == expected->kind &&
              item.flags == expected->flags && item.size == expected->size);
    cr_assert(item.size == 0 || memcmp(item.bytes, expected->bytes, item.size) == 0);
}

static void assert_no_next(void)
{
    struct frame_item item;
    cr_assert_eq(pack_next(&items, &item), 0);
    cr_assert_eq(pack_next(&items, &item), 0);
}

static void assert_texts_return(const char *const *texts, size_t count)
{
    pack_reset(&pack);
    for (size_t i = 0; i < count; i++) {
        const struct frame_item item = text_item(texts[i]);
        test_pack_add(&item);
    }
    cr_assert_eq(pack_open(&items, payload, pack.size), 0);
    for (size_t i = 0; i < count; i++) {
        const struct frame_item item = text_item(texts[i]);
        assert_next(&item);
    }
    assert_no_next();
}

static void assert_payload(const void *expected, size_t size)
{
    cr_assert_eq(pack.size, size, "%u bytes", pack.size);
    cr_assert_arr_eq(payload, expected, size);
}

#define ASSERT_PAYLOAD(...) assert_payload((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

Test(pack, the_bytes_are_those_of_the_document)
{
    pack_reset(&pack);
    struct frame_item item = text_item("rank-0001.ckpt");
    test_pack_add(&item);
    item = text_item("rank-0002.ckpt");
    item.client = 5;
    test_pack_add(&item);
    test_pack_add(&item);
    item = text_item("rank-10010.ckpt");
    item.client = 3;
    test_pack_add(&item);
    item = text_item("");
    item.client = 1000, item.qp = 200;
    test_pack_add(&item);
    item = text_item("rank-0003.ckpt");
    item.client = 1000;
    test_pack_add(&item);
    ASSERT_PAYLOAD(
        /* other client, fields, size, literal: client 4, qp 3, kind 5, flags 6, 14 bytes */
        0x4e, 8, 3, 5, 6, 14, 'r', 'a', 'n', 'k', '-', '0', '0', '0', '1', '.', 'c', 'k', 'p', 't',
        /* the next client, runs: 8 as before, 1 literal, the last; the rest */
        0x81, 8, 2, '2',
        /* all as before */
        0x00,
        /* other client: 2 less; size 15, runs: 5 as before, 5 literal, the last; the rest */
        0x8a, 3, 15, 5, 10, '1', '0', '0', '1', '0',
        /* other client: 997 more; fields, size 0, literal */
        0x4e, 0xca, 0x0f, 0xc8, 0x01, 5, 6, 0,
        /* the client as before, by the item two before the last one: runs */
        0xa0, 8, 2, '3');
}

Test(pack, a_name_in_a_row_is_few_bytes)
{
    static const char *const before = "what a message says before the name, 50 bytes of ";
    char text[100];
    pack_reset(&pack);
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "%s%s-%04d.ckpt", before, i % 2 == 0 ? "rank" : "done's", i / 2);
        struct frame_item item = text_item(text);
        item.client = 1000 + (uint64_t)i;
        test_pack_add(&item);
    }
    cr_assert_leq(pack.size, 300 * 6 + 200, "%u", pack.size);
}

Test(pack, texts_that_grow_shrink_and_share_ends_return)
{
    static const char *const texts[] = {"",
                                        "a",
                                        "a",
                                        "",
                                        "abc",
                                        "abcabc",
                                        "abcabcabc",
                                        "abcabc",
                                        "abc",
                                        "bc",
                                        "c",
                                        "abcdefgh",
                                        "h",
                                        "abcdxfgh",
                                        "xbcd",
                                        "abcdefghijklm",
                                        "klm",
                                        "abc",
                                        "aaa",
                                        "aaaaaaaa",
                                        "aaaaaaaaa",
                                        "aaaaaa",
                                        "baaaaab",
                                        "baab",
                                        "a name, and more",
                                        "a name",
                                        "another name",
                                        "a name",
                                        "a name, and more",
                                        "and more",
                                        "x"};
    assert_texts_return(texts, sizeof texts / sizeof *texts);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            assert_texts_return((const char *const[]){texts[i], texts[k]}, 2);
}

/* An item that is like one before in some of its bytes, or like none. */
static struct frame_item random_item(uint8_t *bytes, const struct frame_item *like)
{
    struct frame_item item = *like;
    const uint32_t limits[] = {1, 20, 150, PACK_REMEMBERED + 2, 5000};
    memcpy(bytes, like->bytes, like->size);
    if (test_pack_below(4) == 0)
        item.size = test_pack_below(limits[test_pack_below(5)]);
    if (item.size > like->size || test_pack_below(10) == 0)
        memcpy(bytes, noise + test_pack_below(1000), item.size);
    for (uint32_t changes = test_pack_below(6); changes > 0 && item.size > 0; changes--)
        bytes[test_pack_below(item.size)] ^= (uint8_t)(1 + test_pack_below(255));
    if (item.size > 4 && test_pack_below(6) == 0)
        memmove(bytes + 1, bytes, --item.size - 1);
    item.client += (uint64_t)(int64_t)((int)test_pack_below(5) - 2) << test_pack_below(64);
    if (test_pack_below(4) == 0)
        item.qp = test_pack_below(2) << test_pack_below(32), item.kind = (uint16_t)test_pack_below(12);
    if (test_pack_below(4) == 0)
        item.flags = (uint16_t)test_pack_below(65536);
    item.bytes = bytes;
    return item;
}

enum { LIST = 4000 };

/* Fills a frame; how many it took. */
static unsigned random_list(struct frame_item *list, uint8_t (*bytes)[5000])
{
    struct frame_item none = {.bytes = noise};
    unsigned count = 0;
    for (; count < LIST; count++) {
        const unsigned back = 1 + test_pack_below(6);
        list[count] = random_item(bytes[count], count >= back ? &list[count - back] : &none);
        int code = pack_add(&pack, &list[count]);
        cr_assert(code == 0 || code == -ENOSPC);
        if (code != 0)
            break;
    }
    return count;
}

Test(pack, any_list_returns)
{
    struct frame_item *list = calloc(LIST, sizeof *list);
    uint8_t(*bytes)[5000] = calloc(LIST, sizeof *bytes);
    for (int round = 0; round < 200; round++) {
        pack_reset(&pack);
        const unsigned count = random_list(list, bytes);
        cr_assert_geq(count, 13);
        uint8_t *copy = malloc(pack.size); /* of exactly this size, for a sanitizer */
        memcpy(copy, payload, pack.size);
        cr_assert_eq(pack_open(&items, copy, pack.size), 0);
        free(copy);
        for (unsigned i = 0; i < count; i++)
            assert_next(&list[i]);
        assert_no_next();
    }
    free(list);
    free(bytes);
}

Test(pack, what_is_like_nothing_costs_what_it_holds)
{
    pack_reset(&pack);
    for (uint32_t i = 0, before = 0; i < 100; i++, before = pack.size) {
        struct frame_item item = {
            .client = 1000000007ull * i, .kind = (uint16_t)(1 + i % 12), .size = 100, .bytes = noise + i * 100};
        test_pack_add(&item);
        cr_assert_leq(pack.size - before, 20 + item.size);
    }
}

Test(pack, the_longest_item_fits_alone)
{
    struct frame_item item = {.client = 1ull << 63, .qp = UINT32_MAX, .kind = UINT16_MAX, .flags = UINT16_MAX, .bytes = noise};
    pack_reset(&pack);
    item.size = FRAME_ITEM_MAX + 1;
    cr_assert_eq(pack_add(&pack, &item), -EMSGSIZE);
    item.size = UINT32_MAX;
    cr_assert_eq(pack_add(&pack, &item), -EMSGSIZE);
    cr_assert_eq(pack.size, 0);
    item.size = FRAME_ITEM_MAX;
    test_pack_add(&item);
    cr_assert_eq(pack.size, FRAME_PAYLOAD_MAX);
    cr_assert_eq(pack_open(&items, payload, pack.size), 0);
    assert_next(&item);
    assert_no_next();
    item.size = 0;
    cr_assert_eq(pack_add(&pack, &item), -ENOSPC);
    cr_assert_eq(pack.size, FRAME_PAYLOAD_MAX);
}

Test(pack, no_more_goes_in_than_may_come_out)
{
    struct frame_item item = {.kind = 1, .size = 500, .bytes = noise};
    uint32_t count = 0;
    pack_reset(&pack);
    while (pack_add(&pack, &item) == 0)
        count++;
    cr_assert_eq(count, PACK_UNPACKED_MAX / (PACK_COUNTED + 500));
    cr_assert_eq(pack_open(&items, payload, pack.size), 0);
    for (uint32_t i = 0; i < count; i++)
        assert_next(&item);
    assert_no_next();
    payload[pack.size++] = 0; /* one more, all as before */
    cr_assert_eq(pack_open(&items, payload, pack.size), -EBADMSG);
    assert_no_next();
}

/* What begins a payload is one only at an item's end. */
Test(pack, a_payload_that_ends_within_an_item_is_malformed)
{
    static const char *const texts[] = {"one of them", "one of three", "another", "another one", "another", "one of all", ""};
    size_t ends[8] = {0};
    pack_reset(&pack);
    for (size_t i = 0; i < 7; i++) {
        struct frame_item item = text_item(texts[i]);
        item.client = i * 1000;
        test_pack_add(&item);
        ends[i + 1] = pack.size;
    }
    for (size_t cut = 0, after = 0; cut <= pack.size; cut++) {
        uint8_t *copy = malloc(cut > 0 ? cut : 1);
        memcpy(copy, payload, cut);
        after += cut > ends[after];
        cr_assert_eq(pack_open(&items, copy, cut), cut == ends[after] ? 0 : -EBADMSG, "%zu", cut);
        free(copy);
        if (cut != ends[after])
            assert_no_next();
    }
}

static void assert_malformed(const char *why, const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size);
    memcpy(copy, bytes, size);
    cr_assert_eq(pack_open(&items, copy, size), -EBADMSG, "%s", why);
    free(copy);
    assert_no_next();
}

#define ASSERT_MALFORMED(why, ...) assert_malformed(why, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

Test(pack, what_no_sender_writes_is_malformed)
{
    ASSERT_MALFORMED("a kind of client that is none", 0x03);
    ASSERT_MALFORMED("a kind of bytes that is none", 0xc0);
    ASSERT_MALFORMED("bytes of an item that was not", 0x08, 1);
    ASSERT_MALFORMED("the same of a run", 0x88, 2, 1, 2, 'x');
    ASSERT_MALFORMED("the rest of one", 0x88, 2, 0, 2, 'x');
    ASSERT_MALFORMED("more literal bytes than the item has", 0x88, 1, 0, 4, 'x', 'y');
    ASSERT_MALFORMED("more literal bytes than there are", 0x48, 3, 'x', 'y');
    ASSERT_MALFORMED("a number that never ends", 0x02, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0);
    ASSERT_MALFORMED("a number above 64 bits", 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2);
    ASSERT_MALFORMED("a number that is longer than it had to be", 0x02, 0x80, 0);
    ASSERT_MALFORMED("a qp above 32 bits", 0x04, 0x80, 0x80, 0x80, 0x80, 0x10, 1, 1);
    ASSERT_MALFORMED("a kind above 16 bits", 0x04, 1, 0x80, 0x80, 4, 1);
    ASSERT_MALFORMED("flags above 16 bits", 0x04, 1, 1, 0x80, 0x80, 4);
    ASSERT_MALFORMED("a size above the largest", 0x48, 0xff, 0xff, 3);
    ASSERT_MALFORMED("a size near 2^32", 0x48, 0xff, 0xff, 0xff, 0xff, 0x0f, 1);
    ASSERT_MALFORMED("a size near 2^64", 0x48, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1);
    ASSERT_MALFORMED("a literal run near 2^31", 0x88, 1, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f, 1);
}

/* Of a longer item only the fields are told by another one. */
Test(pack, bytes_of_long_items_are_not_remembered)
{
    struct frame_item item = {.kind = 1, .size = PACK_REMEMBERED + 1, .bytes = noise};
    pack_reset(&pack);
    test_pack_add(&item);
    const uint32_t size = pack.size;
    test_pack_add(&item);
    cr_assert_eq(pack.size - size, item.size + 3);
    item.size--;
    test_pack_add(&item);
    test_pack_add(&item);
    cr_assert_eq(pack.size - size, 2 * item.size + 1 + 3 + 3 + 1);
    cr_assert_eq(pack_open(&items, payload, pack.size), 0);
    payload[0] = 0;
    for (int i = 0; i < 4; i++) {
        item.size = PACK_REMEMBERED + (i < 2);
        assert_next(&item);
    }
}
