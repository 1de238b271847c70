/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What a daemon does where members of the session are gone, with a network that is open: not where libfabric is too old. */

#include "ops/ops.h"

#include "coordinator/dir_times.h"
#include "membership/remote_stall.h"
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

/* What is waited for: whether the file system holds something up there is to be asked. */

static uint16_t asked[4];
static size_t asked_count;

static int members_note_asked(struct shuntd *unused, uint16_t member)
{
    asked[asked_count++ % 4] = member;
    return 0;
}

static int members_note_awaited(void *unused, uint16_t member)
{
    return members_note_asked(NULL, member);
}

Test(ops_members, one_that_a_collective_waits_for_is_asked_the_second_time)
{
    members_join(7);
    struct message close = named(MESSAGE_RMDIR, ".", "out");
    uint64_t last = 0;
    close.rmdir.child = id_of("out");
    const uint32_t tag = post(ME, close);
    cr_assert(waits(tag));
    cr_assert_eq(collective_each_asked(&shuntd, &last, members_note_asked), 0);
    cr_assert_eq(asked_count, 0, "it may answer at once");
    cr_assert_eq(collective_each_asked(&shuntd, &last, members_note_asked), 0);
    cr_assert(asked_count == 1 && asked[0] == 7);
    members_leave_last(7);
    cr_assert_eq(collective_each_asked(&shuntd, &last, members_note_asked), 0);
    cr_assert_eq(asked_count, 1);
}

Test(ops_members, one_that_holds_a_name_is_asked_if_the_name_is_waited_for)
{
    struct name_question reserve = {.op = NAME_RESERVE,
                                    .member = 7,
                                    .branch = 2,
                                    .id = 1,
                                    .dir = id_of("out"),
                                    .entry = {.state = RECORD_PENDING, .type = DT_REG},
                                    .name = "n",
                                    .length = 1};
    struct name_answer answer;
    cr_assert_eq(home_ask(shuntd.home, &reserve, &answer), 0);
    cr_assert_eq(answer.result, 0);
    cr_assert_eq(home_each_awaited(shuntd.home, members_note_awaited, NULL), 0);
    cr_assert_eq(asked_count, 0);
    reserve.member = 8;
    cr_assert_eq(home_ask(shuntd.home, &reserve, &answer), HOME_WAITS);
    cr_assert_eq(home_each_awaited(shuntd.home, members_note_awaited, NULL), 0);
    cr_assert(asked_count == 1 && asked[0] == 7);
}

/* Two daemons that wait for each other, and say so to each other, do not make it any younger. */
Test(ops_members, when_something_was_held_up_is_passed_on_as_it_was)
{
    cr_assert_eq(remote_stall_create(&shuntd), 0);
    cr_assert_eq(remote_stall_told(&shuntd), 0);
    remote_stall_hear(&shuntd, 7, 0);
    cr_assert_eq(remote_stall_told(&shuntd), 0, "nothing is");
    remote_stall_hear(&shuntd, 7, 60 * CLOCK_SECOND);
    cr_assert_eq(remote_stall_told(&shuntd), 0, "long ago");
    remote_stall_hear(&shuntd, 7, CLOCK_SECOND);
    uint64_t told = remote_stall_told(&shuntd);
    cr_assert_geq(told, CLOCK_SECOND);
    for (int times = 0; times < 10; times++) {
        remote_stall_hear(&shuntd, 7, told);
        const uint64_t again = remote_stall_told(&shuntd);
        cr_assert_gt(again, told);
        told = again;
    }
    shuntd.stalled = clock_monotonic();
    cr_assert_lt(remote_stall_told(&shuntd), told, "here, and now");
    remote_stall_free(&shuntd);
}

/* This daemon was its coordinator, and may know nothing of it any more. */
Test(ops_members, times_of_a_directory_that_is_not_known_go_to_its_coordinator)
{
    const struct message_times times = {.changed = 1};
    const struct dirid id = {.ino = 1, .birth = 1};
    for (uint16_t member = 7; member <= 8; member++)
        members_join(member);
    shuntd.route.home[record_shard(id, 0)] = 7;
    cr_assert_eq(dir_times_take(&shuntd, 7, id, &times), 0);
    cr_assert(peers_is_idle(shuntd.peers, 7), "which has said it itself");
    cr_assert_eq(dir_times_take(&shuntd, 8, id, &times), 0);
    cr_assert_not(peers_is_idle(shuntd.peers, 7));
    cr_assert(peers_is_idle(shuntd.peers, 8));
    shuntd.route.home[record_shard(id, 0)] = shuntd.me.number;
    cr_assert_eq(dir_times_take(&shuntd, 8, id, &times), 0);
    cr_assert(peers_is_idle(shuntd.peers, 8));
}
