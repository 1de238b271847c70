/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Who is home of names, in a session of three members of which the first is this daemon; nobody else is there
 * to hear it. */

#include "membership/homes.h"

#include <criterion/criterion.h>

#include "membership/recovery.h"
#include "ops_fixture.h"

static struct session_member members[3];

static void homes_init(void)
{
    serving_init();
    shuntd.session.members = members;
    shuntd.session.next = 4;
    shuntd.me.number = 1;
}

TestSuite(homes, .init = homes_init, .fini = serving_finish);

/* An epoch with these members; `moved`: a change of homes, the number of its epoch. */
static void test_homes_adopt(uint32_t moved, size_t count, const struct session_member *of)
{
    memcpy(members, of, count * sizeof *of);
    shuntd.session.count = count;
    shuntd.session.moved = moved;
    cr_assert_eq(homes_adopt(&shuntd), 0);
    serving_end();
}

static const struct session_member three[] = {
    {.number = 1, .home = SESSION_HOME}, {.number = 2, .home = SESSION_HOME}, {.number = 3, .home = SESSION_HOME}};
static const struct session_member last_goes[] = {
    {.number = 1, .home = SESSION_HOME}, {.number = 2, .home = SESSION_HOME}, {.number = 3, .home = SESSION_GOING}};

Test(homes, what_a_member_is_to_hand_over_is_waited_for)
{
    test_homes_adopt(5, 3, three);
    cr_assert_eq(shuntd.route.missing, 0);
    test_homes_adopt(6, 3, last_goes);
    cr_assert_gt(shuntd.route.missing, 0);
    cr_assert(homes_are_moving(&shuntd));
    cr_assert_not(route_lacks_home(&shuntd.route, &shuntd.session));
}

Test(homes, who_is_gone_before_it_has_handed_over_is_not_waited_for)
{
    test_homes_adopt(5, 3, three);
    test_homes_adopt(6, 3, last_goes);
    shuntd.session.count = 2; /* he ended at once: an epoch that moves nothing */
    cr_assert(route_lacks_home(&shuntd.route, &shuntd.session));
    static const struct session_member again[] = {{.number = 1, .home = SESSION_COMING}, {.number = 2, .home = SESSION_COMING}};
    test_homes_adopt(7, 2, again);
    cr_assert_not(route_lacks_home(&shuntd.route, &shuntd.session));
}

Test(homes, that_a_move_is_over_is_said_of_that_move_alone)
{
    test_homes_adopt(5, 3, three);
    test_homes_adopt(6, 3, last_goes);
    shuntd.moved = true;           /* all have said so, and it is to be published */
    test_homes_adopt(7, 3, three); /* another one came first */
    cr_assert_not(shuntd.moved);
}
