/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Directories that are wholly at home with one daemon, in a session of three members of which the first is this daemon;
 * nobody else is there to hear it. */

#include "coordinator/delegation.h"

#include <criterion/criterion.h>

#include "home/route.h"
#include "ops_fixture.h"

static struct session_member members[3];
static char ruled[8], other[8]; /* directories that this daemon rules, and that another one does */

static void delegation_note(const char *name)
{
    char path[16];
    snprintf(path, sizeof path, "r/%s", name);
    place_directory(path);
    strcpy(route_of_dir(&shuntd.route, id_of(name)) == 1 ? ruled : other, name);
}

static void delegation_init(void)
{
    serving_init();
    for (uint16_t i = 0; i < 3; i++)
        members[i] = (struct session_member){.number = (uint16_t)(i + 1), .home = SESSION_HOME};
    shuntd.session.members = members;
    shuntd.session.count = 3;
    shuntd.session.next = 4;
    shuntd.session.moved = 5;
    shuntd.me.number = 1;
    cr_assert_eq(homes_adopt(&shuntd), 0);
    serving_end();
    for (char i = 'a'; i <= 'z' && (*ruled == '\0' || *other == '\0'); i++)
        delegation_note((char[]){'d', i, '\0'});
}

TestSuite(whole, .init = delegation_init, .fini = serving_finish);

/* Another member's processes want to use it. */
static void delegation_comes(uint16_t member, const char *directory)
{
    const struct message load = load_message(id_of(directory), directory);
    cr_assert_eq(coordinator_receive(&shuntd, member, 1, &load), 0);
    serving_end();
    serving_settle();
}

static bool is_whole(const char *directory)
{
    struct record_dir record;
    const struct home_dir *dir = home_of(directory);
    bool here = dir != NULL && dir->delegation != 0;
    int code = record_of(id_of(directory), &record);
    cr_assert_eq(here, code == 0 && (record.flags & RECORD_DELEGATED), "the index says otherwise");
    return here;
}

/* How many of these names are in the index. */
static unsigned delegation_known(const char *directory, unsigned count)
{
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++)
        found += !is_unknown(directory, (char[]){'f', (char)('a' + i), '\0'});
    return found;
}

static void delegation_make(const char *directory, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        born(directory, (char[]){'f', (char)('a' + i), '\0'});
}

Test(whole, who_comes_first_has_it_whatever_the_shards)
{
    load(ruled);
    cr_assert(is_whole(ruled));
    delegation_make(ruled, 20);
    cr_assert_eq(delegation_known(ruled, 20), 20);
}

Test(whole, the_second_has_it_back_for_all)
{
    load(ruled);
    delegation_make(ruled, 20);
    delegation_comes(2, ruled);
    cr_assert_not(is_whole(ruled));
    cr_assert(delegation_known(ruled, 20) < 20, "the others are at home elsewhere");
    delegation_comes(1, ruled);
    cr_assert_not(is_whole(ruled), "it is not given twice");
}

Test(whole, what_was_begun_comes_to_its_end_before)
{
    load(ruled);
    const struct message *answer = ask(ME, reserve(ruled, "file", DT_REG));
    uint64_t ino = make_at(place_of(answer, 0, ruled, "file"));
    delegation_comes(2, ruled);
    cr_assert_neq(home_of(ruled)->delegation, 0);
    cr_assert(home_has_waiting(shuntd.home), "its end is heard at once");
    cr_assert_eq(result(ME, reserve(ruled, "another", DT_REG)), MESSAGE_NOT_LOADED, "nothing is begun");
    confirm(ME, ruled, "file", ino);
    cr_assert_eq(home_of(ruled)->delegation, 0);
    cr_assert_not(home_has_waiting(shuntd.home));
}

static bool may_be(const char *directory, uint16_t member, uint16_t flags, size_t names)
{
    struct coordinator_request question = {.member = member, .message = {.flags = flags}};
    struct home_dir *dir = home_dir_add(shuntd.home, id_of(directory), directory);
    cr_assert_not_null(home_coordinator(dir));
    return delegation_may_be(&shuntd, dir, &question, names);
}

Test(whole, it_is_given_once_to_a_home_while_all_are_there)
{
    cr_assert(may_be(ruled, 2, 0, 100));
    cr_assert_not(may_be(ruled, 2, MESSAGE_SPREAD, 100), "a member that is about to leave");
    cr_assert_not(may_be(ruled, 2, 0, 1u << 20), "too many to be read twice");
    members[1].home = SESSION_LEAVING;
    cr_assert_not(may_be(ruled, 2, 0, 100));
    members[1].home = SESSION_HOME;
    shuntd.session.next = 5;
    cr_assert_not(may_be(ruled, 2, 0, 100), "somebody has left");
    shuntd.session.next = 4;
    home_of(ruled)->coordinator->sharded = true;
    cr_assert_not(may_be(ruled, 2, 0, 100), "homes may have names");
    home_of(ruled)->coordinator->sharded = false;
    coordinator_add_node(home_of(ruled)->coordinator, 2);
    cr_assert_not(may_be(ruled, 2, 0, 100), "it has had it");
}

/* Its coordinator's answer, and how many names that speaks of. */
static int delegation_take(struct home_dir *dir, uint64_t number, uint64_t names)
{
    const struct message answer = {.coordinator_answer = {.delegation = number, .names = names}};
    int code = delegation_accept(&shuntd, dir, &answer, shuntd.route.epoch);
    serving_end();
    return code;
}

Test(whole, what_has_not_come_wholly_is_given_back)
{
    struct home_dir *dir = home_dir_add(shuntd.home, id_of(other), other);
    dir->load_number = 7;
    dir->listed = 3;
    cr_assert_eq(delegation_take(dir, 7, 4), -EAGAIN);
    cr_assert(!dir->complete && dir->delegation == 0 && dir->listed == 0);
    dir->listed = 3;
    cr_assert_eq(delegation_take(dir, 8, 3), -EAGAIN, "these were of the one before");
    dir->load_number = 9;
    dir->listed = 3;
    cr_assert_eq(delegation_take(dir, 8, 3), -EAGAIN, "another load has begun");
    cr_assert_eq(dir->listed, 3);
    cr_assert_eq(delegation_take(dir, 9, 3), 0);
    cr_assert(dir->complete && dir->delegation == 9);
    cr_assert_eq(delegation_take(dir, 9, UINT64_MAX), 0, "again, to another process");
    cr_assert_eq(dir->delegation, 9);
}

Test(whole, a_gift_of_another_epoch_is_refused_and_touches_nothing)
{
    struct home_dir *dir = home_dir_add(shuntd.home, id_of(other), other);
    const struct message answer = {.coordinator_answer = {.delegation = 7, .names = 3}};
    dir->listed = 3; /* by the next load */
    cr_assert_eq(delegation_accept(&shuntd, dir, &answer, shuntd.route.epoch - 1), -EAGAIN);
    serving_end();
    cr_assert(dir->delegation == 0 && dir->listed == 3);
}

Test(whole, who_is_asked_for_what_it_has_not_got_says_so)
{
    struct home_dir *dir = home_dir_add(shuntd.home, id_of(ruled), ruled);
    cr_assert_not_null(home_coordinator(dir));
    coordinator_add_node(dir->coordinator, 1); /* the answer came to nobody */
    dir->coordinator->loaded = true;
    dir->coordinator->delegation = 7;
    dir->listed = 1;
    delegation_comes(2, ruled);
    cr_assert(home_of(ruled)->coordinator->delegation == 0 && home_of(ruled)->listed == 0);
}

Test(whole, a_directory_that_is_to_be_given_back_is_not_loaded_meanwhile)
{
    load(ruled);
    const struct message *answer = ask(ME, reserve(ruled, "file", DT_REG));
    uint64_t ino = make_at(place_of(answer, 0, ruled, "file"));
    delegation_comes(2, ruled);
    uint32_t again = post(YOU, load_message(id_of(ruled), ruled));
    cr_assert(waits(again));
    confirm(ME, ruled, "file", ino);
    cr_assert_eq(home_of(ruled)->delegation, 0);
}

Test(whole, word_of_an_earlier_gift_is_passed_over)
{
    struct home_dir *dir = home_dir_add(shuntd.home, id_of(other), other);
    cr_assert_eq(delegation_take(dir, 8, 0), 0);
    cr_assert_eq(delegation_recalled(&shuntd, route_of_dir(&shuntd.route, dir->id), dir->id, 7), 0);
    cr_assert_eq(dir->delegation, 8);
    serving_end();
    load(ruled);
    const struct message given = {
        .type = MESSAGE_RETURN, .dir = id_of(ruled), .delegation.number = home_of(ruled)->delegation - 1};
    cr_assert_eq(coordinator_receive(&shuntd, 1, 0, &given), 0);
    serving_end();
    cr_assert(home_of(ruled)->coordinator->loaded && home_of(ruled)->coordinator->delegation != 0);
}

Test(whole, who_leaves_gives_all_back)
{
    load(ruled);
    delegation_make(ruled, 3);
    const struct message *answer = ask(ME, reserve(ruled, "file", DT_REG));
    uint64_t ino = make_at(place_of(answer, 0, ruled, "file"));
    cr_assert_eq(delegation_leave(&shuntd), 0);
    cr_assert(delegation_has_any(&shuntd), "one is under way");
    serving_end();
    confirm(ME, ruled, "file", ino);
    cr_assert_not(delegation_has_any(&shuntd));
    cr_assert_eq(delegation_known(ruled, 3), 0);
    cr_assert_not(home_of(ruled)->coordinator != NULL && home_of(ruled)->coordinator->loaded);
}

Test(whole, what_a_member_had_that_is_gone_is_read_again)
{
    delegation_comes(2, ruled);
    cr_assert_neq(home_of(ruled)->coordinator->delegation, 0);
    cr_assert_eq(delegation_member_gone(&shuntd, 3), 0);
    cr_assert_neq(home_of(ruled)->coordinator->delegation, 0);
    cr_assert_eq(delegation_member_gone(&shuntd, 2), 0);
    serving_end();
    struct home_dir *dir = home_of(ruled);
    cr_assert(dir == NULL || dir->coordinator == NULL || (dir->coordinator->delegation == 0 && !dir->coordinator->loaded));
}
