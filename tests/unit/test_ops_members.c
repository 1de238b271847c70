/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What a daemon does where members of the session are gone, with a network that is open: not where libfabric is too old. */

#include "ops/ops.h"

#include "ops_fixture.h"
#include "rpc/collective.h"

static void members_init(void)
{
    serving_init();
    load(".");
    load("out");
}

TestSuite(ops_members, .init = members_init, .fini = serving_finish, .timeout = 60);

/* Other members, which never answer: what is sent to them waits in this process. */

static struct session_member members[16];

static void members_ring(void *unused)
{
}

static void members_join(uint16_t member)
{
    uint8_t address[SESSION_ADDRESS_MAX];
    size_t size = sizeof address;
    if (!peers_is_open(shuntd.peers))
        cr_assert_eq(peers_open(shuntd.peers, "tcp:127.0.0.1", members_ring, NULL), 0);
    cr_assert_eq(peers_address(shuntd.peers, address, &size), 0);
    cr_assert_eq(peers_add(shuntd.peers, member, 1, address, size), 0);
    members[shuntd.session.count++] = (struct session_member){.number = member};
    shuntd.session.members = members;
}

static void members_leave_last(uint16_t member)
{
    shuntd.session.count--;
    cr_assert_eq(collective_gone(&shuntd, member), 0);
    peers_remove(shuntd.peers, member);
    serving_end();
}

/* It was home of nothing, so homes are what they were: nobody says that anything begins again. */
Test(ops_members, one_that_asked_a_member_which_is_gone_is_tried_again)
{
    members_join(7);
    struct message close = named(MESSAGE_RMDIR, ".", "out");
    close.rmdir.child = id_of("out");
    const uint32_t tag = post(ME, close);
    cr_assert(waits(tag));
    members_leave_last(7);
    cr_assert_eq(result_of(tag), 0);
}

/* The daemon that handed it over did not know yet that one of them is none any more. */
Test(ops_members, members_behind_one_that_is_gone_are_told)
{
    static const uint16_t stops[] = {0, 7, 3, 4, 5}; /* this daemon, then those that it is to pass it on to */
    uint8_t bytes[2 + 6 * 5 + MESSAGE_SHORT] = {5};
    const struct message list = {.type = MESSAGE_SYNC, .dir = id_of("out")};
    for (uint16_t member = 2; member <= 5; member++)
        members_join(member);
    for (size_t i = 0; i < 5; i++)
        bytes[2 + 6 * i] = (uint8_t)stops[i];
    const struct frame_item item = {.kind = RPC_COLLECTIVE,
                                    .client = 1,
                                    .bytes = bytes,
                                    .size = 2 + 6 * 5 + (uint32_t)message_encode(bytes + 2 + 6 * 5, MESSAGE_SHORT, &list)};
    cr_assert_eq(collective_receive(&shuntd, 2, &item), 0);
    serving_settle();
    cr_assert_not(peers_is_idle(shuntd.peers, 4), "and it the fifth");
    cr_assert_not(peers_is_idle(shuntd.peers, 3));
    cr_assert(peers_is_idle(shuntd.peers, 5) && peers_is_idle(shuntd.peers, 2));
    collective_free(&shuntd);
}
