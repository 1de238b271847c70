/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <criterion/criterion.h>
#include <errno.h>

#include "base/clock.h"
#include "base/adaptive_spin.h"
#include "base/list.h"
#include "base/sys.h"
#include "base/text.h"

Test(clock, it_is_the_kernels)
{
    const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE};
    for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        struct timespec before, after;
        SYS2(SYS_clock_gettime, clocks[i], &before);
        const uint64_t now = clock_of(clocks[i]);
        SYS2(SYS_clock_gettime, clocks[i], &after);
        cr_assert_geq(now, (uint64_t)before.tv_sec * CLOCK_SECOND + (uint64_t)before.tv_nsec);
        cr_assert_leq(now, (uint64_t)after.tv_sec * CLOCK_SECOND + (uint64_t)after.tv_nsec);
    }
}

Test(text, pieces_are_appended)
{
    char memory[16];
    struct text t;
    text_init(&t, memory, sizeof memory);
    text_add(&t, "leaf ");
    text_number(&t, 42, 10);
    text_bytes(&t, "/xyz", 2);
    text_number(&t, 0, 16);
    cr_assert(text_ok(&t));
    cr_assert_str_eq(memory, "leaf 42/x0");
    cr_assert_eq(t.length, 10);
}

Test(text, a_word_is_found_where_it_is_first)
{
    const char *in = "ababac";
    cr_assert_eq(text_find(in, "ab"), in);
    cr_assert_eq(text_find(in, "abac"), in + 2);
    cr_assert_eq(text_find(in, "c"), in + 5);
    cr_assert_null(text_find(in, "ad"));
    cr_assert_null(text_find("", "a"));
}

Test(text, what_does_not_fit_marks_it_for_good)
{
    char memory[8] = "";
    struct text t;
    text_init(&t, memory, 6);
    text_add(&t, "12345");
    cr_assert(text_ok(&t), "five bytes and the zero fit");
    text_add(&t, "");
    cr_assert(text_ok(&t));
    text_add(&t, "6");
    cr_assert(!text_ok(&t));
    cr_assert_str_eq(memory, "12345");
    text_add(&t, "");
    cr_assert(!text_ok(&t), "full stays full");
    text_init(&t, memory, 0);
    cr_assert(!text_ok(&t));
}

Test(text, numbers_of_every_size)
{
    char memory[80];
    struct text t;
    text_init(&t, memory, sizeof memory);
    text_number(&t, UINT64_MAX, 10);
    text_add(&t, " ");
    text_number(&t, UINT64_MAX, 16);
    text_add(&t, " ");
    text_number(&t, UINT64_MAX, 8);
    cr_assert_str_eq(memory, "18446744073709551615 ffffffffffffffff 1777777777777777777777");
}

struct item {
    int number;
    struct link link;
};

Test(list, first_in_first_out)
{
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    struct link list;
    list_init(&list);
    cr_assert(list_empty(&list) && list_take(&list) == NULL);
    for (int i = 0; i < 3; i++)
        list_append(&list, &items[i].link);
    list_remove(&items[1].link);
    list_remove(&items[1].link); /* one that is on no list may be removed */
    cr_assert_eq(LINK_OF(list_take(&list), struct item, link)->number, 0);
    cr_assert_eq(LINK_OF(list_take(&list), struct item, link)->number, 2);
    cr_assert(list_empty(&list));
}

Test(list, one_is_moved_after_the_other)
{
    struct item items[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    struct link to, from;
    list_init(&to);
    list_init(&from);
    list_append(&to, &items[0].link);
    list_append(&to, &items[1].link);
    list_move(&to, &from);
    list_append(&from, &items[2].link);
    list_append(&from, &items[3].link);
    list_move(&to, &from);
    cr_assert(list_empty(&from));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(LINK_OF(list_take(&to), struct item, link)->number, i);
}

/* Moments. */

static unsigned tries_of(struct adaptive_spin *spin, unsigned waits, bool in_vain)
{
    unsigned tries = 0;
    for (unsigned i = 0; i < waits; i++)
        if (adaptive_spin_pays(spin)) {
            adaptive_spin_was(spin, in_vain);
            tries++;
        }
    return tries;
}

Test(spin, what_is_without_success_is_tried_ever_less_often)
{
    struct adaptive_spin spin = {0};
    cr_assert_eq(tries_of(&spin, 1 + 1 + 1 + 3 + 1, true), 3, "at once, behind one wait, behind three more");
    unsigned tries = tries_of(&spin, 100 * (SPIN_REST + 1), true);
    cr_assert(tries >= 100 && tries < 120, "%u", tries);
}

Test(spin, what_pays_is_tried_each_time)
{
    struct adaptive_spin spin = {0};
    cr_assert_eq(tries_of(&spin, 1000, false), 1000);
    tries_of(&spin, 10000, true);
    while (!adaptive_spin_pays(&spin))
        ;
    adaptive_spin_was(&spin, false);
    cr_assert_eq(tries_of(&spin, 1000, false), 1000, "from the first one on that pays");
}

Test(spin, nobody_looks_for_longer)
{
    unsigned looks = 0;
    uint64_t before = clock_monotonic();
    cr_assert(SPIN_LOOK(++looks == 20));
    cr_assert_eq(looks, 20);
    cr_assert_not(SPIN_LOOK(false));
    cr_assert_geq(clock_monotonic() - before, SPIN);
}

Test(clock, split_and_order)
{
    struct timespec split = clock_split(3 * CLOCK_SECOND + 7);
    cr_assert(split.tv_sec == 3 && split.tv_nsec == 7);
    uint64_t before = clock_monotonic();
    cr_assert(clock_monotonic() >= before);
    cr_assert(clock_files() > 1700000000 * CLOCK_SECOND);
}

Test(sys, errors_are_negative_and_errno_is_left_alone)
{
    errno = 77;
    cr_assert_eq(sys_openat(AT_FDCWD, "/nonexistent/x", O_RDONLY, 0), -ENOENT);
    cr_assert_eq(sys_close(-1), -EBADF);
    cr_assert(sys_is_error(sys_mmap(NULL, 0, 0, 0, -1, 0)));
    int fd = sys_openat(AT_FDCWD, "/dev/zero", O_RDONLY | O_CLOEXEC, 0);
    char bytes[4] = "abc";
    cr_assert(fd >= 0 && sys_read(fd, bytes, sizeof bytes) == 4 && bytes[0] == 0 && sys_close(fd) == 0);
    cr_assert_eq(errno, 77);
}
