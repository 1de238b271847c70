/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "coordinator/coordinator.h"

#include <criterion/criterion.h>
#include <string.h>

#include "coordinator/share.h"
#include "ops/ops.h"
#include "rpc/collective.h"
#include "shuntd.h"
#include "wire/page.h"

static struct shuntd coordinator;
static struct home_dir ruled, other; /* the coordinator's, and another daemon's */

static void test_coordinator_mark(const char *mirror)
{
    ruled.record.flags |= RECORD_MARKED;
    ruled.record.marker = 7;
    strcpy(ruled.record.mirror, mirror);
    coordinator_number_decision(&coordinator, &ruled);
}

static void coordinator_unmark(void)
{
    ruled.record.flags &= ~(uint32_t)RECORD_MARKED;
    ruled.record.marker = 0;
    memset(ruled.record.mirror, 0, sizeof ruled.record.mirror);
    coordinator_number_decision(&coordinator, &ruled);
}

/* The coordinator's word as it is now. Its text is the record's: it changes with that. */
static struct message_record coordinator_word(struct record_dir *kept)
{
    struct message_record told;
    coordinator_put_record(&told, &ruled);
    *kept = ruled.record;
    told.mirror.text = kept->mirror;
    return told;
}

Test(rule, what_it_decides_is_told)
{
    struct record_dir kept;
    test_coordinator_mark("out-1");
    struct message_record told = coordinator_word(&kept);
    coordinator_adopt_record(&other, &told);
    cr_assert(other.record.flags == RECORD_MARKED && other.record.marker == 7);
    cr_assert_str_eq(other.record.mirror, "out-1");
    cr_assert(!other.mirrored, "whether all know, that does not say");
}

Test(rule, an_older_word_that_comes_later_is_passed_over)
{
    struct record_dir first, second;
    coordinator_number_decision(&coordinator, &ruled);
    struct message_record before = coordinator_word(&first);
    test_coordinator_mark("out-1");
    struct message_record after = coordinator_word(&second);
    coordinator_adopt_record(&other, &after);
    coordinator_adopt_answer(&other, &before);
    cr_assert_str_eq(other.record.mirror, "out-1");
    cr_assert(!other.mirrored);
}

Test(rule, creates_go_to_a_mirror_after_the_coordinators_answer)
{
    struct record_dir marked, bare;
    test_coordinator_mark("out-1");
    struct message_record answer = coordinator_word(&marked);
    coordinator_adopt_answer(&other, &answer);
    cr_assert(other.mirrored);
    coordinator_unmark();
    struct message_record closed = coordinator_word(&bare);
    coordinator_adopt_record(&other, &closed);
    cr_assert(!other.mirrored && other.record.flags == 0 && other.record.mirror[0] == '\0');
    coordinator_adopt_answer(&other, &answer);
    cr_assert(!other.mirrored, "an old answer");
}

Test(rule, one_that_took_over_goes_on_after_the_one_before)
{
    struct record_dir kept;
    struct shuntd next = {.route.epoch = 5};
    coordinator.route.epoch = 4;
    for (int i = 0; i < 1000; i++)
        coordinator_number_decision(&coordinator, &ruled);
    uint64_t last = ruled.version;
    ruled = (struct home_dir){0}; /* it knows nothing of what was */
    coordinator_number_decision(&next, &ruled);
    cr_assert_gt(ruled.version, last);
    struct message_record told = coordinator_word(&kept);
    other.version = last;
    coordinator_adopt_record(&other, &told);
    cr_assert_eq(other.version, ruled.version);
}

Test(rule, that_a_directory_is_watched_is_not_forgotten)
{
    struct record_dir kept, later;
    ruled.record.why = RECORD_WHY_WATCHED;
    struct message_record watched = coordinator_word(&kept);
    ruled.record.why = RECORD_WHY_NOT;
    test_coordinator_mark("out-1");
    struct message_record marked = coordinator_word(&later);
    coordinator_adopt_record(&other, &marked);
    coordinator_adopt_record(&other, &watched);
    cr_assert_eq(other.record.why, RECORD_WHY_WATCHED);
    cr_assert_str_eq(other.record.mirror, "out-1");
}

/* Counters of all daemons. */

#define COUNTERS 40 /* that a daemon tells of itself */
#define MAX_HOPS 29
#define CATALOGUE_BEHIND 39

static size_t coordinator_page(char *to, uint64_t value)
{
    uint64_t values[COUNTERS];
    for (unsigned i = 0; i < COUNTERS; i++)
        values[i] = value + i;
    memcpy(to, values, sizeof values);
    return sizeof values;
}

Test(status, counters_are_added_and_of_hops_and_delays_the_highest_counts)
{
    char sum[1024], one[1024];
    uint64_t values[COUNTERS];
    size_t used = status_add_page(sum, 0, one, coordinator_page(one, 100));
    used = status_add_page(sum, used, one, coordinator_page(one, 1000));
    cr_assert_eq(used, sizeof values);
    memcpy(values, sum, sizeof values);
    for (unsigned i = 0; i < COUNTERS; i++)
        cr_assert_eq(values[i], i == MAX_HOPS || i == CATALOGUE_BEHIND ? 1000 + i : 1100 + 2 * i, "counter %u", i);
}

/* How many names each home was sent, of two daemons. */
static size_t coordinator_sent(uint8_t *to, const uint16_t (*sent)[2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + 6 * i, (const uint8_t[6]){(uint8_t)sent[i][0], 0, (uint8_t)sent[i][1], 0, 0, 0}, 6);
    return 6 * count;
}

Test(share, what_homes_were_sent_is_summed_up)
{
    static uint8_t sum[PAGE_MAX], one[64], expected[64];
    size_t used = coordinator_sent(sum, (const uint16_t[][2]){{1, 10}, {3, 30}, {4, 40}}, 3);
    size_t size = coordinator_sent(one, (const uint16_t[][2]){{2, 2}, {3, 3}, {9, 9}, {10, 1}}, 4);
    used = share_add_page((char *)sum, used, (const char *)one, size);
    size = coordinator_sent(expected, (const uint16_t[][2]){{1, 10}, {2, 2}, {3, 33}, {4, 40}, {9, 9}, {10, 1}}, 6);
    cr_assert_eq(used, size);
    cr_assert_arr_eq(sum, expected, size);
    cr_assert_eq(share_add_page((char *)sum, used, NULL, 0), size);
    cr_assert_arr_eq(sum, expected, size);
    cr_assert_eq(share_add_page((char *)sum, 0, (const char *)expected, size), size);
    cr_assert_arr_eq(sum, expected, size);
}

Test(status, a_page_of_another_length_is_not_counted)
{
    char sum[1024], one[1024] = {0};
    size_t used = status_add_page(sum, 0, one, coordinator_page(one, 1));
    cr_assert_eq(status_add_page(sum, used, one, used - 8), used);
    cr_assert_eq(status_add_page(sum, used, one, 0), used);
    uint64_t first;
    memcpy(&first, sum, sizeof first);
    cr_assert_eq(first, 1);
}
