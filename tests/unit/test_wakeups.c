/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Who is woken after whom: seen by the words of the rows, which are raised with each wake. */

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "listen/wakeups.h"

static struct channel *channel;
static struct wakeups wakeups;

static void wakeups_begin(void)
{
    channel = mmap(NULL, CHANNEL_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert_neq(channel, MAP_FAILED);
    wakeups_init(&wakeups, channel);
    cr_assert_geq(wakeups.cores, 1);
    wakeups.cores = 2;
}

TestSuite(wakeups, .init = wakeups_begin);

static void test_wakeups_add(const uint32_t *qps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        wakeups_add(&wakeups, qps[i]);
}

static unsigned wakeups_raised(void)
{
    unsigned all = 0;
    for (unsigned i = 0; i < CHANNEL_QPS / CHANNEL_ROW; i++)
        all += channel->answers[i];
    return all;
}

Test(wakeups, nobody)
{
    cr_assert(wakeups_are_none(&wakeups));
    wakeups_wake_next(&wakeups);
    wakeups_wake_due(&wakeups);
    wakeups_wake_all(&wakeups);
    cr_assert_eq(wakeups_raised(), 0);
}

Test(wakeups, as_many_as_there_are_cores_in_their_order)
{
    test_wakeups_add((const uint32_t[]){70, 3, 4, 5, 2047}, 5);
    wakeups_wake_next(&wakeups);
    cr_assert_eq(channel->answers[2], 1);
    cr_assert_eq(channel->answers[0], 1, "lane 3");
    wakeups_wake_next(&wakeups);
    cr_assert_eq(channel->answers[0], 2, "one call for 4 and 5");
    cr_assert_eq(wakeups_raised(), 3);
    wakeups_wake_next(&wakeups);
    cr_assert_eq(channel->answers[CHANNEL_QPS / CHANNEL_ROW - 1], 1);
    cr_assert(wakeups_are_none(&wakeups));
}

Test(wakeups, who_is_there_already_keeps_its_place)
{
    test_wakeups_add((const uint32_t[]){1, 40, 1, 40, 1}, 5);
    wakeups.cores = 1;
    wakeups_wake_next(&wakeups);
    cr_assert_eq(channel->answers[0], 1);
    test_wakeups_add((const uint32_t[]){1}, 1);
    wakeups_wake_next(&wakeups);
    cr_assert_eq(channel->answers[1], 1, "the client that slept on comes before the one that is back");
    wakeups_wake_next(&wakeups);
    cr_assert_eq(channel->answers[0], 2);
    cr_assert(wakeups_are_none(&wakeups));
}

Test(wakeups, not_so_soon_after_the_last_ones)
{
    test_wakeups_add((const uint32_t[]){1, 2, 3, 4, 5}, 5);
    wakeups_wake_due(&wakeups);
    cr_assert_eq(wakeups_raised(), 1, "the first ones at once");
    wakeups.woke = clock_monotonic() + 1000 * CLOCK_SECOND;
    wakeups_wake_due(&wakeups);
    cr_assert_eq(wakeups_raised(), 1);
    wakeups.woke = 0;
    wakeups_wake_due(&wakeups);
    cr_assert_eq(wakeups_raised(), 2);
    cr_assert_eq(wakeups.count, 1);
}

Test(wakeups, all_of_them_round_the_ring)
{
    for (unsigned round = 0; round < 3; round++) {
        for (uint32_t qp = round; qp < CHANNEL_QPS; qp++)
            wakeups_add(&wakeups, qp);
        cr_assert_eq(wakeups.count, CHANNEL_QPS - round);
        wakeups_wake_all(&wakeups);
        cr_assert(wakeups_are_none(&wakeups));
        cr_assert_eq(wakeups_raised(), (round + 1) * CHANNEL_QPS / CHANNEL_ROW, "a call for each row");
    }
}

static void *sleep_in_qp(void *qp)
{
    const uint32_t number = (uint32_t)(uintptr_t)qp;
    const struct timespec never = clock_split(clock_monotonic() + 1000 * CLOCK_SECOND);
    sys_futex_wait_bits(&channel->answers[number / CHANNEL_ROW], 0, &never, 1u << number % CHANNEL_ROW);
    return NULL;
}

/* Some may come too late for their wake: by then the word has changed. */
Test(wakeups, threads_that_sleep_are_woken)
{
    pthread_t thread[5];
    for (uint32_t qp = 0; qp < 5; qp++) {
        cr_assert_eq(pthread_create(&thread[qp], NULL, sleep_in_qp, (void *)(uintptr_t)(qp * 20)), 0);
        wakeups_add(&wakeups, qp * 20);
    }
    while (!wakeups_are_none(&wakeups))
        wakeups_wake_next(&wakeups);
    for (int i = 0; i < 5; i++)
        pthread_join(thread[i], NULL);
}
