/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "index/record.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <linux/stat.h>
#include <string.h>

static const struct dirid directory = {.ino = 0x0102030405060708, .birth = 0x1112131415161718};

Test(record, identity_is_inode_and_create)
{
    struct statx stat = {.stx_mask = STATX_INO | STATX_BTIME, .stx_ino = 7, .stx_btime = {.tv_sec = 2, .tv_nsec = 3}};
    cr_assert(dirid_equal(dirid_of(&stat), (struct dirid){7, 2000000003}));
    stat.stx_mask = STATX_INO;
    cr_assert(dirid_equal(dirid_of(&stat), (struct dirid){7, 0}), "a file system without birth times");
}

Test(record, hash_keeps_to_its_range)
{
    char name[4] = {0};
    for (unsigned i = 0; i < 100000; i++) {
        memcpy(name, &i, sizeof name);
        uint64_t hash = record_hash(name, sizeof name);
        cr_assert(hash > 2 && hash <= INT64_MAX);
    }
    /* It is in every index and decides who is home: it must never change. */
    cr_assert_eq(record_hash("", 0), 0x2d06800538d394c2 & INT64_MAX);
    cr_assert_neq(record_hash("a", 1), record_hash("b", 1));
}

static int test_record_order(struct dirid a, const char *name, struct dirid b, const char *other)
{
    int there = record_order(a, name, strlen(name), b, other, strlen(other));
    int back = record_order(b, other, strlen(other), a, name, strlen(name));
    cr_assert((there < 0) == (back > 0) && (there == 0) == (back == 0));
    return there;
}

/* It says who waits for whom: it must be the same on all nodes. */
Test(record, names_have_an_order)
{
    const struct dirid follower = {directory.ino, directory.birth + 1}, far = {directory.ino + 1, 0};
    cr_assert_eq(test_record_order(directory, "a", directory, "a"), 0);
    cr_assert_lt(test_record_order(directory, "a", follower, "a"), 0);
    cr_assert_lt(test_record_order(follower, "a", far, "a"), 0);
    bool first = record_hash("a", 1) < record_hash("b", 1);
    cr_assert_eq(test_record_order(directory, "a", directory, "b") < 0, first);
    cr_assert_lt(test_record_order(directory, "b", follower, "a"), 0, "the directory before the name");
}

Test(record, entry_survives)
{
    const struct record_entry entry = {DT_REG, RECORD_PENDING, 513, 0x01020304, 0x1112131415161718};
    struct record_entry back;
    uint8_t bytes[16];
    cr_assert_eq(record_entry_encode(bytes, &entry), sizeof bytes);
    cr_assert_arr_eq(bytes, "\10\2\1\2\4\3\2\1\30\27\26\25\24\23\22\21", 16);
    cr_assert_eq(record_entry_decode(&back, bytes, sizeof bytes), 0);
    cr_assert(record_same(&entry, &back) && back.type == DT_REG && back.state == RECORD_PENDING);
}

Test(record, entry_is_checked)
{
    const struct record_entry entry = {DT_REG, RECORD_LIVE, 0, 0, 5};
    struct record_entry back;
    uint8_t bytes[17] = {0};
    record_entry_encode(bytes, &entry);
    cr_assert_eq(record_entry_decode(&back, bytes, 15), -EBADMSG);
    cr_assert_eq(record_entry_decode(&back, bytes, 17), -EBADMSG);
    cr_assert_eq(record_entry_decode(&back, bytes, 0), -EBADMSG);
    bytes[0] = 3;
    cr_assert_eq(record_entry_decode(&back, bytes, 16), -EBADMSG, "no such type");
    record_entry_encode(bytes, &entry);
    bytes[1] = 0;
    cr_assert_eq(record_entry_decode(&back, bytes, 16), -EBADMSG, "no such state");
    bytes[1] = 4;
    cr_assert_eq(record_entry_decode(&back, bytes, 16), -EBADMSG, "no such state");
    record_entry_encode(bytes, &entry);
    bytes[4] = 1;
    cr_assert_eq(record_entry_decode(&back, bytes, 16), -EBADMSG, "a leaf of the trunk");
}

static struct record_dir some_dir(void)
{
    return (struct record_dir){.flags = RECORD_LOADED | RECORD_MARKED,
                               .why = RECORD_WHY_MODE,
                               .marker = 0x5f3a9c01d2e4,
                               .changed = 1,
                               .settled = 2,
                               .stood = 3,
                               .mirror = "out-5f3a9c01d2e4"};
}

Test(record, directory_survives)
{
    const struct record_dir dir = some_dir();
    struct record_dir back;
    uint8_t bytes[RECORD_DIR_SIZE];
    cr_assert_eq(record_dir_encode(bytes, &dir), sizeof bytes);
    cr_assert_eq(record_dir_decode(&back, bytes, sizeof bytes), 0);
    cr_assert(back.flags == dir.flags && back.why == dir.why && back.marker == dir.marker);
    cr_assert(back.changed == 1 && back.settled == 2 && back.stood == 3);
    cr_assert_str_eq(back.mirror, dir.mirror);
}

Test(record, directory_is_checked)
{
    const struct record_dir good = some_dir();
    struct record_dir bad[7], back;
    uint8_t bytes[RECORD_DIR_SIZE];
    for (size_t i = 0; i < 7; i++)
        bad[i] = good;
    bad[0].flags = 128;
    bad[1].why = RECORD_WHY_COUNT;
    bad[2].marker = 1ull << 48;
    bad[3].marker = 0;
    bad[4].mirror[0] = '\0';
    strcpy(bad[5].mirror, "../../etc");
    strcpy(bad[6].mirror, "..");
    for (size_t i = 0; i < 7; i++) {
        record_dir_encode(bytes, &bad[i]);
        cr_assert_eq(record_dir_decode(&back, bytes, sizeof bytes), -EBADMSG, "number %zu", i);
    }
    record_dir_encode(bytes, &good);
    cr_assert_eq(record_dir_decode(&back, bytes, sizeof bytes - 1), -EBADMSG);
    memset(bytes + 40, 'a', RECORD_MIRROR_MAX);
    cr_assert_eq(record_dir_decode(&back, bytes, sizeof bytes), -EBADMSG, "not terminated");
}

/* What a reader is told, where the trunk has those times. */
static void assert_times(const struct record_dir *dir, uint64_t modified, uint64_t changed, uint64_t told_modified,
                         uint64_t told_changed)
{
    const uint64_t trunk[2] = {modified, changed};
    record_times(dir, &modified, &changed);
    cr_assert(modified == told_modified && changed == told_changed, "%lu and %lu for %lu and %lu", modified, changed, trunk[0],
              trunk[1]);
}

Test(record, times_that_the_trunk_does_not_know)
{
    const struct record_dir dir = {.changed = 50};
    assert_times(&dir, 40, 41, 50, 50);
    assert_times(&dir, 60, 60, 60, 60);
    assert_times(&dir, 40, 60, 50, 60);
}

Test(record, times_that_the_trunk_was_told)
{
    const struct record_dir dir = {.flags = RECORD_WRITTEN, .changed = 50, .settled = 70, .stood = 55};
    assert_times(&dir, 50, 70, 50, 55);
    assert_times(&dir, 50, 80, 50, 80);
    assert_times(&dir, 7, 80, 7, 80);
    assert_times(&dir, 40, 45, 50, 55);
}

Test(record, times_that_changed_since)
{
    const struct record_dir dir = {.changed = 75, .settled = 70, .stood = 55};
    assert_times(&dir, 50, 70, 75, 75);
    assert_times(&dir, 40, 45, 75, 75);
    assert_times(&dir, 50, 90, 75, 90);
}

Test(record, times_that_were_set)
{
    const struct record_dir dir = {.flags = RECORD_LOADED};
    assert_times(&dir, 7, 80, 7, 80);
}
