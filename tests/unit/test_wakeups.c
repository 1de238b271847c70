/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Who is woken after whom: seen by the words of the rows, which are raised with each wake. */

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "listen/wakeups.h"

static struct road *road;
static struct sleepers sleepers;

static void begin(void)
{
    road = mmap(NULL, ROAD_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert_neq(road, MAP_FAILED);
    sleepers_init(&sleepers, road);
    cr_assert_geq(sleepers.cores, 1);
    sleepers.cores = 2;
}

TestSuite(sleepers, .init = begin);

static void add(const uint32_t *lanes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sleepers_add(&sleepers, lanes[i]);
}

static unsigned raised(void)
{
    unsigned all = 0;
    for (unsigned i = 0; i < ROAD_LANES / ROAD_ROW; i++)
        all += road->answers[i];
    return all;
}

Test(sleepers, nobody)
{
    cr_assert(sleepers_are_none(&sleepers));
    sleepers_wake_next(&sleepers);
    sleepers_wake_due(&sleepers);
    sleepers_wake_all(&sleepers);
    cr_assert_eq(raised(), 0);
}

Test(sleepers, as_many_as_there_are_cores_in_their_order)
{
    add((const uint32_t[]){70, 3, 4, 5, 2047}, 5);
    sleepers_wake_next(&sleepers);
    cr_assert_eq(road->answers[2], 1);
    cr_assert_eq(road->answers[0], 1, "lane 3");
    sleepers_wake_next(&sleepers);
    cr_assert_eq(road->answers[0], 2, "one call for 4 and 5");
    cr_assert_eq(raised(), 3);
    sleepers_wake_next(&sleepers);
    cr_assert_eq(road->answers[ROAD_LANES / ROAD_ROW - 1], 1);
    cr_assert(sleepers_are_none(&sleepers));
}

Test(sleepers, who_is_there_already_keeps_his_place)
{
    add((const uint32_t[]){1, 40, 1, 40, 1}, 5);
    sleepers.cores = 1;
    sleepers_wake_next(&sleepers);
    cr_assert_eq(road->answers[0], 1);
    add((const uint32_t[]){1}, 1);
    sleepers_wake_next(&sleepers);
    cr_assert_eq(road->answers[1], 1, "he who slept on is before him who is back");
    sleepers_wake_next(&sleepers);
    cr_assert_eq(road->answers[0], 2);
    cr_assert(sleepers_are_none(&sleepers));
}

Test(sleepers, not_so_soon_after_the_last_ones)
{
    add((const uint32_t[]){1, 2, 3, 4, 5}, 5);
    sleepers_wake_due(&sleepers);
    cr_assert_eq(raised(), 1, "the first ones at once");
    sleepers.woke = clock_monotonic() + 1000 * CLOCK_SECOND;
    sleepers_wake_due(&sleepers);
    cr_assert_eq(raised(), 1);
    sleepers.woke = 0;
    sleepers_wake_due(&sleepers);
    cr_assert_eq(raised(), 2);
    cr_assert_eq(sleepers.count, 1);
}

Test(sleepers, all_of_them_round_the_ring)
{
    for (unsigned round = 0; round < 3; round++) {
        for (uint32_t lane = round; lane < ROAD_LANES; lane++)
            sleepers_add(&sleepers, lane);
        cr_assert_eq(sleepers.count, ROAD_LANES - round);
        sleepers_wake_all(&sleepers);
        cr_assert(sleepers_are_none(&sleepers));
        cr_assert_eq(raised(), (round + 1) * ROAD_LANES / ROAD_ROW, "a call for each row");
    }
}

static void *sleep_in_lane(void *lane)
{
    const uint32_t number = (uint32_t)(uintptr_t)lane;
    const struct timespec never = clock_split(clock_monotonic() + 1000 * CLOCK_SECOND);
    sys_futex_wait_bits(&road->answers[number / ROAD_ROW], 0, &never, 1u << number % ROAD_ROW);
    return NULL;
}

/* Some may come too late for their wake: by then the word has changed. */
Test(sleepers, threads_that_sleep_are_woken)
{
    pthread_t thread[5];
    for (uint32_t lane = 0; lane < 5; lane++) {
        cr_assert_eq(pthread_create(&thread[lane], NULL, sleep_in_lane, (void *)(uintptr_t)(lane * 20)), 0);
        sleepers_add(&sleepers, lane * 20);
    }
    while (!sleepers_are_none(&sleepers))
        sleepers_wake_next(&sleepers);
    for (int i = 0; i < 5; i++)
        pthread_join(thread[i], NULL);
}
