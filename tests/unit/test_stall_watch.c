/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <criterion/criterion.h>
#include <semaphore.h>

#include "disk/disk.h"
#include "disk/stall_watch.h"
#include "shuntd.h"

static struct shuntd shuntd;
static struct stall_watch *watch;
static sem_t told, rung, goes_on;
static unsigned tellings;

static void stall_watch_told(struct shuntd *to)
{
    cr_assert_eq(to, &shuntd);
    __atomic_add_fetch(&tellings, 1, __ATOMIC_SEQ_CST);
    sem_post(&told);
}

static void stall_watch_init(void)
{
    sem_init(&told, 0, 0);
    sem_init(&rung, 0, 0);
    sem_init(&goes_on, 0, 0);
    cr_assert_eq(stall_watch_create(&watch, &shuntd, stall_watch_told), 0);
}

static void stall_watch_finish(void)
{
    stall_watch_destroy(watch);
    sem_destroy(&goes_on);
    sem_destroy(&rung);
    sem_destroy(&told);
}

TestSuite(stall_watch, .init = stall_watch_init, .fini = stall_watch_finish);

static void stall_watch_ring(struct shuntd *to)
{
    sem_post(&rung);
}

static void stall_watch_wait(struct disk_job *job, const struct shuntd *to)
{
    sem_wait(&goes_on);
}

static void stall_watch_skip(struct disk_job *job, const struct shuntd *to)
{
}

/* A job that the file system holds up, and another one meanwhile. */
static void stall_watch_hold_up_a_job(struct stall_watch *of)
{
    struct disk_job held = {.carry_out = stall_watch_wait}, other = {.carry_out = stall_watch_skip};
    struct disk *disk;
    cr_assert_eq(disk_create(&disk, &shuntd, 2, stall_watch_ring, of), 0);
    disk_submit(disk, &held);
    disk_submit(disk, &other);
    sem_wait(&rung);
    cr_assert_eq(disk_next_done(disk), &other);
    if (of != NULL)
        for (int times = 0; times < 2; times++)
            sem_wait(&told);
    sem_post(&goes_on);
    sem_wait(&rung);
    cr_assert_eq(disk_next_done(disk), &held);
    disk_destroy(disk);
}

Test(stall_watch, a_job_that_is_held_up_is_told_of_again_and_again)
{
    stall_watch_hold_up_a_job(watch);
}

Test(stall_watch, a_disk_without_a_watch_tells_nothing)
{
    stall_watch_hold_up_a_job(NULL);
    cr_assert_eq(tellings, 0);
}

Test(stall_watch, what_main_waits_for_is_told_of)
{
    const int waited = STALL_WATCHED(watch, sem_wait(&told));
    cr_assert_eq(waited, 0);
}
