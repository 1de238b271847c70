/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "home/sequence.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct sequence sequence;

/* How many have come in a row, then. */
static unsigned sequence_made(const char *name)
{
    return sequence_add(&sequence, name, strlen(name));
}

static const char *sequence_prefetched(unsigned prefetch)
{
    static char name[RECORD_NAME_MAX + 1];
    name[sequence_predict(&sequence, prefetch, name)] = '\0';
    return name;
}

static void sequence_begin(void)
{
    memset(&sequence, 0, sizeof sequence);
}

TestSuite(sequence, .init = sequence_begin);

Test(sequence, names_that_differ_in_a_number)
{
    static const struct {
        const char *first, *second, *third, *next, *tenth;
    } cases[] = {
        {"f1", "f2", "f3", "f4", "f13"},
        {"8", "9", "10", "11", "20"},
        {"a98", "a99", "a100", "a101", "a110"},
        {"ckpt.0098", "ckpt.0099", "ckpt.0100", "ckpt.0101", "ckpt.0110"},
        {"ckpt.098.h5", "ckpt.099.h5", "ckpt.100.h5", "ckpt.101.h5", "ckpt.110.h5"},
        {"step-10-of-64", "step-20-of-64", "step-30-of-64", "step-40-of-64", "step-130-of-64"},
        {"x1y7", "x2y7", "x3y7", "x4y7", "x13y7"},
        {"f30", "f29", "f28", "f27", "f18"},
        {"f009", "f008", "f007", "f006", ""},
        {"f2", "f1", "f0", "", ""},
        {"f997", "f998", "f999", "f1000", "f1009"},
        {"f0997", "f0998", "f0999", "f1000", "f1009"},
        {"9997", "9998", "9999", "10000", "10009"},
        {"\xff 1", "\xff 2", "\xff 3", "\xff 4", "\xff 13"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sequence_begin();
        cr_assert_eq(sequence_made(cases[i].first), 0);
        cr_assert_eq(sequence_made(cases[i].second), 0);
        cr_assert_eq(sequence_made(cases[i].third), 1, "%s", cases[i].third);
        cr_assert_str_eq(sequence_prefetched(1), cases[i].next);
        cr_assert_str_eq(sequence_prefetched(10), cases[i].tenth);
        if (*cases[i].next != '\0')
            cr_assert_eq(sequence_made(cases[i].next), 2, "%s", cases[i].next);
    }
}

Test(sequence, a_number_may_outgrow_its_width)
{
    sequence_made("f07"), sequence_made("f08"), sequence_made("f09");
    cr_assert_str_eq(sequence_prefetched(90), "f99");
    cr_assert_str_eq(sequence_prefetched(91), "f100");
}

Test(sequence, names_that_do_not)
{
    static const char *const others[][3] = {
        {"a", "b", "c"},           {"f1", "f1", "f1"}, {"f1", "g2", "h3"},
        {"f1-1", "f2-2", "f3-3"},  {"f1", "f2", "f4"}, {"f1", "f2.h5", "f3"},
        {"f01", "f2", "f03"},      {"", "1", "2"},     {"f1", "f2", "g3"},
        {"f99", "f0100", "f0101"}, {"f", "f1", "f2"},  {"1234567890123456789", "1234567890123456790", "1234567890123456791"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        sequence_begin();
        for (size_t k = 0; k < 3; k++)
            cr_assert_eq(sequence_made(others[i][k]), 0, "%s", others[i][k]);
    }
}

Test(sequence, what_interrupts_one_ends_it)
{
    sequence_made("f1"), sequence_made("f2"), sequence_made("f3");
    cr_assert_eq(sequence_made("other"), 0);
    cr_assert_str_eq(sequence_prefetched(1), "");
    cr_assert_eq(sequence_made("f4"), 0);
    cr_assert_eq(sequence_made("f5"), 0);
    cr_assert_eq(sequence_made("f6"), 1);
}

Test(sequence, the_longest_names)
{
    char name[RECORD_NAME_MAX];
    memset(name, 'x', sizeof name);
    for (char digit = '7'; digit <= '9'; digit++) {
        name[sizeof name - 1] = digit;
        sequence_add(&sequence, name, sizeof name);
    }
    cr_assert_eq(sequence.run, 1);
    cr_assert_eq(sequence_predict(&sequence, 1, name), 0, "a byte too long");
    sequence_begin();
    for (int i = 1; i <= 3; i++) {
        char number[20];
        cr_assert_eq(snprintf(number, sizeof number, "%018lld", 999999999999999996ll + i), 18);
        sequence_made(number);
    }
    cr_assert_eq(sequence.run, 1);
    cr_assert_str_eq(sequence_prefetched(1), "", "19 digits");
    cr_assert_str_eq(sequence_prefetched(0), "999999999999999999");
}
