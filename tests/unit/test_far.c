/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What a daemon knows of the processes of other nodes. */

#include "listen/far.h"

#include "leaks.h"
#include "listen/listen.h"
#include "place.h"

static struct far *far;

static void begin(void)
{
    cr_assert_eq(far_create(&far), 0);
}

static void end(void)
{
    far_destroy(far);
    leaks_none();
}

TestSuite(far, .init = begin, .fini = end);

static uint64_t client(uint16_t member, uint64_t number)
{
    return (uint64_t)member << LISTEN_MEMBER_SHIFT | number;
}

Test(far, one_is_there_until_it_ends)
{
    for (uint64_t i = 1; i <= 20000; i++)
        cr_assert_eq(far_add(far, client((uint16_t)(1 + i % 7), i)), 0);
    for (uint64_t i = 1; i <= 20000; i++)
        cr_assert(far_is_there(far, client((uint16_t)(1 + i % 7), i)), "%lu", i);
    cr_assert_not(far_is_there(far, client(1, 1)), "member 2's");
    for (uint64_t i = 1; i <= 20000; i += 2)
        far_remove(far, client((uint16_t)(1 + i % 7), i));
    for (uint64_t i = 1; i <= 20000; i++)
        cr_assert_eq(far_is_there(far, client((uint16_t)(1 + i % 7), i)), i % 2 == 0, "%lu", i);
    far_remove(far, client(3, 99999));
}

Test(far, to_be_known_twice_is_to_be_known)
{
    cr_assert_eq(far_add(far, client(2, 5)), 0);
    cr_assert_eq(far_add(far, client(2, 5)), 0);
    far_remove(far, client(2, 5));
    cr_assert_not(far_is_there(far, client(2, 5)));
}

Test(far, any_of_a_member)
{
    cr_assert_eq(far_any(far, 2), 0);
    far_add(far, client(2, 5));
    far_add(far, client(3, 6));
    cr_assert_eq(far_any(far, 2), client(2, 5));
    cr_assert_eq(far_any(far, 4), 0);
    far_remove(far, client(2, 5));
    cr_assert_eq(far_any(far, 2), 0);
}

Test(far, given_up)
{
    far_add(far, client(2, 5));
    far_give_up(far, client(2, 5), 17, 100);
    far_give_up(far, client(2, 5), 18, 200);
    cr_assert(far_gave_up(far, client(2, 5), 17, 100) && far_gave_up(far, client(2, 5), 18, 200));
    cr_assert_not(far_gave_up(far, client(2, 5), 18, 100), "another lane");
    cr_assert_not(far_gave_up(far, client(2, 6), 17, 100), "another client");
    far_give_up(far, client(2, 5), 17, 101);
    cr_assert(far_gave_up(far, client(2, 5), 17, 101));
    cr_assert_not(far_gave_up(far, client(2, 5), 17, 100));
    cr_assert_not(far_gave_up(far, client(2, 5), 19, 0), "no tag is no request");
    far_remove(far, client(2, 5));
    cr_assert_not(far_gave_up(far, client(2, 5), 17, 101));
    far_give_up(far, client(2, 5), 17, 102);
    cr_assert_not(far_is_there(far, client(2, 5)), "who is gone gives nothing up");
}
