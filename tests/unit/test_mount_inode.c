/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "mount/inode.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOT 1
#define NEVER UINT64_MAX

static struct inode_table table;

static int some_fd(void)
{
    return open("/", O_PATH | O_CLOEXEC);
}

static void make_table(void)
{
    cr_assert_eq(inode_table_init(&table, some_fd(), 20), 0);
}

TestSuite(mount_inode, .init = make_table);

static struct stat stat_of(ino_t number, mode_t type)
{
    return (struct stat){.st_dev = 7, .st_ino = number, .st_mode = type | 0644};
}

static struct inode *take_number(ino_t number, mode_t type, const char *name)
{
    const struct stat stat = stat_of(number, type);
    return inode_take(&table, some_fd(), &stat, ROOT, name);
}

static struct inode *find_number(ino_t number, uint64_t since)
{
    const struct stat stat = stat_of(number, S_IFREG);
    return inode_find(&table, &stat, since, ROOT, "found");
}

Test(mount_inode, is_one_for_all_names_of_a_file)
{
    struct inode *one = take_number(5, S_IFREG, "a");
    cr_assert_eq(take_number(5, S_IFREG, "b"), one);
    cr_assert_eq(find_number(5, NEVER), one);
    cr_assert_eq(one->lookups, 3);
    cr_assert_str_eq(one->name, "found");
    cr_assert_neq(take_number(6, S_IFREG, "c"), one);
}

Test(mount_inode, is_another_for_each_file_that_is_gone)
{
    struct inode *one = inode_take_gone(&table, S_IFDIR), *other = inode_take_gone(&table, S_IFDIR);
    cr_assert(one != other && one->fd == -1 && one->lookups == 1);
    cr_assert_eq(table.count, 2);
    inode_forget(&table, one, 1);
    inode_forget(&table, other, 1);
    cr_assert_eq(table.count, 0);
}

Test(mount_inode, goes_with_the_last_lookup)
{
    struct inode *one = take_number(5, S_IFREG, "a");
    const int fd = one->fd;
    cr_assert_eq(find_number(5, NEVER), one);
    inode_forget(&table, one, 1);
    cr_assert_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    inode_forget(&table, one, 1);
    cr_assert_lt(fcntl(fd, F_GETFD), 0);
    cr_assert_null(find_number(5, NEVER));
    cr_assert_eq(table.count, 0);
}

Test(mount_inode, that_became_known_after_a_stat_is_not_what_that_saw)
{
    const uint64_t before = inode_now(&table);
    take_number(5, S_IFREG, "a");
    cr_assert_null(find_number(5, before));
    cr_assert_not_null(find_number(5, inode_now(&table)));
}

Test(mount_inode, are_found_among_many)
{
    enum { MANY = 5000 };
    static struct inode *all[MANY];
    const int limit = 400; /* descriptors; those of the others are one */
    for (int i = 0; i < MANY; i++) {
        const struct stat stat = stat_of((ino_t)i + 1, S_IFREG);
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        all[i] = inode_take(&table, i < limit ? some_fd() : -1, &stat, ROOT, name);
        cr_assert_not_null(all[i]);
    }
    for (int i = 0; i < MANY; i++)
        cr_assert_eq(find_number((ino_t)i + 1, NEVER), all[i]);
    cr_assert_geq(table.slots_count, MANY / 2);
    for (int i = 0; i < MANY; i++)
        inode_forget(&table, all[i], 2);
    cr_assert_eq(table.count, 0);
}

struct trimmed {
    int count;
    char names[64][16];
};

static void remember_name(void *context, uint64_t parent, const char *name)
{
    struct trimmed *to = context;
    cr_assert_eq(parent, ROOT);
    snprintf(to->names[to->count++], sizeof to->names[0], "%s", name);
}

Test(mount_inode, that_were_not_used_for_long_are_trimmed_but_not_what_is_open_nor_directories)
{
    struct trimmed trimmed = {0};
    struct inode *open_one = NULL;
    for (ino_t i = 1; i <= 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", (int)i);
        struct inode *inode = take_number(i, i == 2 ? S_IFDIR : S_IFREG, name);
        open_one = i == 3 ? inode : open_one;
    }
    inode_open(&table, open_one, 1);
    find_number(1, NEVER); /* used last */
    take_number(21, S_IFREG, "f21");
    inode_trim(&table, remember_name, &trimmed);
    cr_assert_eq(trimmed.count, 21 / 4);
    for (int i = 0; i < trimmed.count; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i + 4);
        cr_assert_str_eq(trimmed.names[i], name);
    }
}
