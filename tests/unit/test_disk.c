/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <criterion/criterion.h>
#include <errno.h>
#include <semaphore.h>
#include <string.h>

#include "base/sys.h"
#include "disk/disk.h"
#include "place.h"
#include "shuntd.h"

static struct shuntd shuntd;
static sem_t rung;

TestSuite(disk, .init = place_init, .fini = place_finish);

static void disk_ring(struct shuntd *to)
{
    cr_assert_eq(to, &shuntd);
    sem_post(&rung);
}

struct sum {
    struct disk_job job;
    int number, square;
};

static void carry_out(struct disk_job *job, const struct shuntd *to)
{
    struct sum *sum = (struct sum *)job;
    sum->square = sum->number * sum->number;
}

Test(disk, every_job_comes_back_once)
{
    enum { JOBS = 200 };
    static struct sum sums[JOBS];
    struct disk *disk;
    sem_init(&rung, 0, 0);
    cr_assert_eq(disk_create(&disk, &shuntd, 4, disk_ring, NULL), 0);
    cr_assert(!disk_is_busy(disk) && disk_next_done(disk) == NULL);
    for (int i = 0; i < JOBS; i++) {
        sums[i] = (struct sum){.job.carry_out = carry_out, .number = i};
        disk_submit(disk, &sums[i].job);
    }
    cr_assert(disk_is_busy(disk));
    for (int i = 0; i < JOBS; i++) {
        sem_wait(&rung);
        struct sum *sum = (struct sum *)disk_next_done(disk);
        cr_assert(sum != NULL && sum->square == sum->number * sum->number);
        sum->number = -1;
    }
    cr_assert(!disk_is_busy(disk) && disk_next_done(disk) == NULL);
    for (int i = 0; i < JOBS; i++)
        cr_assert_eq(sums[i].number, -1);
    disk_destroy(disk);
    disk_destroy(NULL);
}

Test(disk, a_trunk_directory_is_known_by_its_identity)
{
    struct statx stat;
    place_directory("root/one");
    place_directory("root/two");
    snprintf(shuntd.root.path, sizeof shuntd.root.path, "%s", place_path("root"));
    cr_assert_eq(sys_statx(AT_FDCWD, place_path("root/one"), 0, STATX_INO | STATX_BTIME, &stat), 0);
    int fd = disk_open_trunk(&shuntd, "one", dirid_of(&stat));
    cr_assert(fd >= 0 && sys_close(fd) == 0);
    cr_assert_eq(disk_open_trunk(&shuntd, "two", dirid_of(&stat)), -ESTALE);
    cr_assert_eq(disk_open_trunk(&shuntd, "three", dirid_of(&stat)), -ENOENT);
    place_file("root/file", "x");
    cr_assert_eq(disk_open_trunk(&shuntd, "file", dirid_of(&stat)), -ENOTDIR);
    cr_assert_eq(symlink("one", place_path("root/link")), 0);
    cr_assert_eq(disk_open_trunk(&shuntd, "link", dirid_of(&stat)), -ENOTDIR, "a link is not followed");
}
