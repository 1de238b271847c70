/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Names whose home is another daemon: what is asked, and what is made of the answers, which the test gives. */

#include "ops/ops.h"

#include <dirent.h>

#include "ops_fixture.h"

#define THEIR_HOME 2

static const struct record_entry nothing;

static void remote_init(void)
{
    serving_init();
    load("out");
}

TestSuite(ops_remote, .init = remote_init, .fini = serving_finish, .timeout = 60);

/* From now on all names are at home there. */
static void remote_move_homes(void)
{
    for (uint32_t shard = 0; shard < RECORD_SHARDS; shard++)
        shuntd.route.home[shard] = THEIR_HOME;
    shuntd.route.own = 0;
}

/* NULL: nobody is at work on it. */
static struct operation *remote_find(const char *name)
{
    return operation_find(shuntd.home, id_of("out"), name, strlen(name));
}

static struct operation *remote_operation(const char *name)
{
    struct operation *operation = remote_find(name);
    cr_assert_not_null(operation, "nobody is at work on %s", name);
    return operation;
}

/* What that operation asks its home for; 0: nothing. */
static unsigned remote_asks(const char *name)
{
    return remote_operation(name)->pending.op;
}

static void remote_says(const char *name, int result, struct record_entry entry)
{
    uint8_t bytes[MESSAGE_SHORT];
    const struct message message = {.type = MESSAGE_NAME_ANSWER,
                                    .result = result,
                                    .epoch = shuntd.route.epoch,
                                    .dir = id_of("out"),
                                    .name_answer.entry = rpc_put_entry(&shuntd, &entry)};
    const struct frame_item item = {.kind = RPC_HOME_REPLY,
                                    .client = remote_operation(name)->id,
                                    .bytes = bytes,
                                    .size = (uint32_t)message_encode(bytes, sizeof bytes, &message)};
    cr_assert_neq(remote_asks(name), 0, "%s: nothing was asked", name);
    cr_assert_eq(home_rpc_take_reply(&shuntd, THEIR_HOME, &item), 0);
    serving_end();
}

/* As the home of a name that is there, or is new (0), answers a claim. */
static void remote_gives(const char *name, uint64_t ino)
{
    const struct record_entry file = {.type = DT_REG, .state = RECORD_LIVE, .branch = 1, .ino = ino};
    const struct operation *operation = remote_operation(name);
    const bool reserves = operation->pending.op == NAME_RESERVE;
    remote_says(name, ino != 0 ? MESSAGE_EXISTS : reserves ? 0 : MESSAGE_ABSENT, ino != 0 ? file : operation->pending.entry);
}

static uint32_t remote_rename(const char *from, const char *to, uint64_t ino)
{
    struct message message = two_names(MESSAGE_RENAME, "out", from, "out", to);
    if (ino != 0)
        message.rename.found = (struct record_entry){.type = DT_REG, .state = RECORD_LIVE, .branch = 1, .ino = ino};
    return post(ME, message);
}

Test(ops_remote, a_rename_asks_for_both_names_at_once)
{
    const uint64_t ino = born("out", "a");
    remote_move_homes();
    const uint32_t tag = remote_rename("a", "b", ino);
    const struct operation *from = remote_operation("a"), *to = remote_operation("b");
    cr_assert(from->pending.op == NAME_CLAIM && from->pending.flags == NAME_NONBLOCK);
    cr_assert(to->pending.op == NAME_CLAIM && to->pending.flags == (NAME_NONBLOCK | NAME_EVEN_ABSENT));
    cr_assert(from->pending.entry.state == RECORD_DYING && to->pending.entry.state == RECORD_PENDING);
    cr_assert(to->pending.entry.branch == 1 && to->pending.entry.ino == 0);
    remote_gives("b", 0);
    cr_assert(waits(tag));
    remote_gives("a", ino);
    cr_assert_eq(result_of(tag), 0, "and readers know: nothing more is asked");
    cr_assert(answer_to(tag)->answer.entry[0].ino == ino && answer_to(tag)->answer.entry[1].branch == 1);
    tell(ME, two_names(MESSAGE_RENAMED, "out", "a", "out", "b"));
    cr_assert_eq(operation_count(shuntd.home), 0);
}

Test(ops_remote, where_its_file_is_not_where_its_process_thought_readers_are_told_again)
{
    const uint64_t ino = born("out", "a");
    remote_move_homes();
    const uint32_t tag = remote_rename("a", "b", 0);
    remote_gives("a", ino);
    remote_gives("b", 0);
    cr_assert(waits(tag) && remote_asks("a") == 0 && remote_asks("b") == NAME_MARK);
    cr_assert_eq(remote_operation("b")->pending.entry.branch, 1);
    remote_says("b", 0, nothing);
    cr_assert_eq(result_of(tag), 0);
}

Test(ops_remote, what_somebody_has_is_asked_for_in_order)
{
    const uint64_t ino = born("out", "a");
    remote_move_homes();
    const uint32_t tag = remote_rename("a", "b", ino);
    remote_gives("a", ino);
    remote_says("b", MESSAGE_BUSY, nothing);
    const bool is_a_first = remote_asks("a") != 0;
    const char *first = is_a_first ? "a" : "b", *second = is_a_first ? "b" : "a";
    cr_assert(remote_operation(first)->pending.flags == NAME_EVEN_ABSENT, "it may wait");
    cr_assert(remote_asks(second) == 0 && !operation_is_claimed(remote_operation(second)), "and holds nothing meanwhile");
    remote_gives(first, is_a_first ? ino : 0);
    remote_gives(second, is_a_first ? 0 : ino);
    cr_assert(waits(tag) && remote_asks("a") == NAME_MARK && remote_asks("b") == NAME_MARK);
    remote_says("a", 0, nothing);
    remote_says("b", 0, nothing);
    cr_assert_eq(result_of(tag), 0);
}

Test(ops_remote, a_client_that_ends_while_both_are_asked_holds_nothing)
{
    const uint64_t ino = born("out", "a");
    remote_move_homes();
    remote_rename("a", "b", ino);
    client_ends(ME);
    remote_gives("b", 0);
    cr_assert_eq(operation_count(shuntd.home), 1);
    remote_gives("a", ino);
    cr_assert_eq(operation_count(shuntd.home), 0);
}

/* A thread has removed so many names that the next one is asked for ahead. */
static void remote_remove_some(void)
{
    remote_move_homes();
    for (unsigned i = 1; i <= 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "f%u", i);
        const uint32_t tag = post(ME, named(MESSAGE_UNLINK, "out", name));
        remote_gives(name, 70 + i);
        cr_assert_eq(result_of(tag), 0);
        tell(ME, named(MESSAGE_UNLINKED, "out", name));
    }
    cr_assert(remote_operation("f5")->pending.flags & NAME_PREFETCH);
}

Test(ops_remote, what_was_said_before_a_process_asked_is_no_answer)
{
    remote_remove_some();
    const uint32_t tag = post(ME, named(MESSAGE_UNLINK, "out", "f5"));
    remote_says("f5", MESSAGE_ABSENT, nothing);
    cr_assert(waits(tag), "it may have been made since");
    cr_assert(remote_asks("f5") == NAME_CLAIM && !(remote_operation("f5")->pending.flags & NAME_PREFETCH));
    remote_gives("f5", 75);
    cr_assert_eq(result_of(tag), 0);
}

Test(ops_remote, what_was_given_before_a_process_asked_is)
{
    remote_remove_some();
    const uint32_t tag = post(ME, named(MESSAGE_UNLINK, "out", "f5"));
    remote_gives("f5", 75);
    cr_assert_eq(result_of(tag), 0);
}

/* Reserved, made and confirmed. */
static void remote_make(const char *name, uint64_t ino)
{
    const uint32_t tag = post(ME, reserve("out", name, DT_REG));
    remote_gives(name, 0);
    cr_assert_eq(result_of(tag), 0);
    confirm(ME, "out", name, ino);
}

/* A thread that has renamed each file after it made it. */
static void remote_rename_some(void)
{
    born("out", "first"); /* its leaf is there */
    remote_move_homes();
    for (unsigned i = 1; i <= 4; i++) {
        char old[8], new[8];
        snprintf(old, sizeof old, "t%u", i * i); /* no sequence */
        snprintf(new, sizeof new, "c%u", i);
        remote_make(old, 80 + i);
        const uint32_t tag = remote_rename(old, new, 80 + i);
        if (remote_asks(old) != 0)
            remote_gives(old, 80 + i);
        if (remote_asks(new) != 0)
            remote_gives(new, 0);
        cr_assert_eq(result_of(tag), 0);
        tell(ME, two_names(MESSAGE_RENAMED, "out", old, "out", new));
    }
}

Test(ops_remote, what_is_made_by_a_thread_that_renames_nothing_is_released)
{
    born("out", "first");
    remote_move_homes();
    remote_make("a", 70);
    cr_assert_null(remote_find("a"));
}

Test(ops_remote, what_is_made_and_renamed_each_time_stays_claimed)
{
    remote_rename_some();
    remote_make("t100", 100);
    cr_assert(operation_is_prefetched(remote_operation("t100")) && operation_is_claimed(remote_operation("t100")));
    cr_assert_eq(result_of(post(YOU, named(MESSAGE_LOOKUP, "out", "t100"))), MESSAGE_EXISTS);
    cr_assert_eq(remote_asks("c5"), NAME_RESERVE, "and the next new name is asked for ahead");
    remote_gives("c5", 0);
    const uint32_t tag = remote_rename("t100", "c5", 100);
    cr_assert_eq(result_of(tag), 0, "nobody was asked");
    tell(ME, two_names(MESSAGE_RENAMED, "out", "t100", "out", "c5"));
    cr_assert_null(remote_find("t100"));
}

Test(ops_remote, what_is_not_renamed_then_is_given_back)
{
    remote_rename_some();
    remote_make("t100", 100);
    remote_make("u", 101);
    cr_assert_null(remote_find("t100"));
    cr_assert_null(remote_find("u"), "that was wrong once");
}

Test(ops_remote, what_is_removed_then_is_given_back)
{
    remote_rename_some();
    remote_make("t100", 100);
    const uint32_t tag = post(YOU, named(MESSAGE_UNLINK, "out", "t100"));
    remote_gives("t100", 100);
    cr_assert_eq(result_of(tag), 0);
}

Test(ops_remote, a_client_that_ends_keeps_nothing)
{
    remote_rename_some();
    remote_make("t100", 100);
    client_ends(ME);
    cr_assert_null(remote_find("t100"));
}
