/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What a daemon grants a process, which takes it without a question: both sides of the channel in this process. */

#include "prefetch/grant.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "ops_fixture.h"

static pid_t me;
static struct request_channel *channel;

/* This process takes a queue pair of the channel, as with its first request. */
static void take_qp(void)
{
    struct listen_request request;
    uint64_t malformed = 0;
    cr_assert_eq(chmod(place_path("run"), 0700), 0);
    cr_assert_eq(request_attach(&channel, place_path("run")), 0);
    cr_assert_eq(request_tell(channel, &(struct message){.type = MESSAGE_SETTLE}), 0);
    cr_assert_eq(listen_next(shuntd.listen, &request, &malformed), 1);
    cr_assert_eq(request.qp, serving_qp(me));
    cr_assert_eq(listen_next(shuntd.listen, &request, &malformed), 0);
}

static void grant_init(void)
{
    serving_init();
    me = getpid();
    load("out");
    load("in");
    take_qp();
}

static void grant_finish(void)
{
    request_abandon(channel);
    serving_finish();
}

TestSuite(grant, .init = grant_init, .fini = grant_finish, .timeout = 60);

static const char *grant_name_of(const char *before, unsigned number)
{
    static char names[8][16];
    static unsigned next;
    char *name = names[next++ % 8];
    snprintf(name, sizeof names[0], "%s%u", before, number);
    return name;
}

static const char *grant_numbered(unsigned number)
{
    return grant_name_of("f", number);
}

static const char *grant_renamed(unsigned number)
{
    return grant_name_of("to", number);
}

/* Those that are asked for, so that four more are granted. */
static void make_four(void)
{
    for (unsigned i = 0; i < 4; i++)
        born_by(me, "out", grant_numbered(i));
}

static bool grant_has(const char *name, bool is_new)
{
    const struct message_text text = message_text(name, strlen(name));
    return request_has_granted(channel, id_of("out"), &text, is_new);
}

static bool is_granted(const char *name)
{
    return grant_has(name, true);
}

static bool is_removal_granted(const char *name)
{
    return grant_has(name, false);
}

static bool grant_is_whole(const struct message *message)
{
    const struct message_text *to = &message->rename.to_name;
    return message->type == MESSAGE_RENAME
               ? request_has_granted(channel, message->dir, to, true)
               : request_has_granted(channel, message->dir, &message->name, message->type == MESSAGE_CREATE);
}

static struct request_answer answer;

/* As the library does it: no daemon is at work meanwhile. */
static void test_grant_take(const struct message *message, struct request_hold *hold)
{
    cr_assert(grant_is_whole(message));
    cr_assert_eq(request_hold(channel, message, &answer, CLOCK_SECOND, hold), 0);
    cr_assert_eq(answer.message.result, 0);
    cr_assert_not(grant_is_whole(message), "once");
}

static void take_birth(const char *name, struct request_hold *hold)
{
    const struct message message = reserve("out", name, DT_REG);
    test_grant_take(&message, hold);
}

static void grant_done(struct request_hold *hold, uint16_t type, const char *name, uint64_t ino)
{
    const struct message message = with_entry(named(type, "out", name), DT_REG, ino);
    cr_assert(request_end(hold, &message));
    request_let_go(hold);
}

/* Takes it and makes the file, which the daemon has not seen yet: its inode number. */
static uint64_t born_unasked(const char *name)
{
    struct request_hold hold = {0};
    take_birth(name, &hold);
    uint64_t ino = make_at(place_of(&answer.message, 0, "out", name));
    grant_done(&hold, MESSAGE_COMMIT, name, ino);
    return ino;
}

static void grant_see(void)
{
    cr_assert_eq(grant_see_all(&shuntd), 0);
    serving_end();
    serving_settle();
}

static void grant_tick(void)
{
    shuntd.now = clock_monotonic();
    cr_assert_eq(prefetch_tick(&shuntd), 0);
    serving_end();
}

/* Making. */

Test(grant, names_in_a_row_are_granted)
{
    make_four();
    for (unsigned i = 4; i < 8; i++) {
        cr_assert(is_granted(grant_numbered(i)), "f%u", i);
        assert_entry("out", grant_numbered(i), RECORD_PENDING, 1000, 0);
    }
    cr_assert_not(is_granted("f8"), "as many as came before");
    cr_assert_not(is_granted("f3"));
}

Test(grant, what_was_taken_and_done_is_there)
{
    make_four();
    const uint64_t creates = shuntd.counts.creates, requests = last_tag;
    uint64_t inos[16];
    for (unsigned i = 4; i < 8; i++)
        inos[i] = born_unasked(grant_numbered(i));
    assert_entry("out", "f4", RECORD_PENDING, 1000, 0);
    grant_see();
    for (unsigned i = 4; i < 8; i++)
        assert_entry("out", grant_numbered(i), RECORD_LIVE, 1000, inos[i]);
    cr_assert_eq(shuntd.counts.creates, creates + 4);
    cr_assert_eq(last_tag, requests, "nobody asked");
    cr_assert(is_granted("f8") && is_granted("f11"), "the next ones");
    cr_assert_eq(leaf_holds("out", 0), 8 + home_of("out")->operations, "what is asked for counts");
}

Test(grant, a_status_counts_what_was_taken)
{
    make_four();
    struct request_hold hold = {0};
    born_unasked("f4");
    take_birth("f5", &hold);
    const struct message *status = ask(YOU, (struct message){.type = MESSAGE_STATUS});
    cr_assert_neq(memmem(status->text_answer.text.text, status->text_answer.text.length, "creates 6\n", 10), NULL);
    cr_assert_neq(memmem(status->text_answer.text.text, status->text_answer.text.length, "prefetched 2\n", 13), NULL);
}

Test(grant, grants_go_on_and_on)
{
    make_four();
    for (unsigned i = 4; i < 500; i++) {
        born_unasked(grant_numbered(i));
        if (i % 3 == 0)
            grant_see();
    }
    grant_see();
    for (unsigned i = 0; i < 500; i++)
        cr_assert_not(is_unknown("out", grant_numbered(i)));
    cr_assert_eq(leaf_holds("out", 0), 500 + home_of("out")->operations);
}

Test(grant, what_is_only_granted_is_absent)
{
    make_four();
    cr_assert_eq(result(YOU, named(MESSAGE_LOOKUP, "out", "f4")), MESSAGE_ABSENT);
    cr_assert_not(is_granted("f4"), "it was taken back, or might be there by now");
    cr_assert(is_granted("f5"));
    born_by(me, "out", "f4");
    cr_assert(is_granted("f5"));
}

Test(grant, who_asks_for_what_was_taken_waits_for_its_end)
{
    struct request_hold hold = {0};
    make_four();
    take_birth("f4", &hold);
    const uint32_t looks = post(YOU, named(MESSAGE_LOOKUP, "out", "f4")), makes = post(YOU, reserve("out", "f4", DT_REG));
    cr_assert(waits(looks) && waits(makes));
    uint64_t ino = make_at(place_of(&answer.message, 0, "out", "f4"));
    grant_done(&hold, MESSAGE_COMMIT, "f4", ino);
    grant_see();
    cr_assert_eq(result_of(looks), MESSAGE_EXISTS);
    cr_assert_eq(result_of(makes), MESSAGE_EXISTS);
    cr_assert_eq(answer_to(makes)->answer.entry[0].ino, ino);
}

Test(grant, who_asks_for_what_was_done_has_it_seen_first)
{
    make_four();
    uint64_t ino = born_unasked("f4");
    cr_assert_eq(result(YOU, named(MESSAGE_LOOKUP, "out", "f4")), MESSAGE_EXISTS);
    assert_entry("out", "f4", RECORD_LIVE, 1000, ino);
    born_unasked("f5");
    cr_assert_eq(result(YOU, named(MESSAGE_UNLINK, "out", "f5")), 0);
    tell(YOU, named(MESSAGE_UNLINKED, "out", "f5"));
    cr_assert(is_unknown("out", "f5"));
}

Test(grant, who_makes_it_first_has_it)
{
    make_four();
    const struct message *given = ask(YOU, reserve("out", "f4", DT_REG));
    cr_assert_eq(given->result, 0);
    cr_assert_not(is_granted("f4"));
    confirm(YOU, "out", "f4", make_at(place_of(given, 0, "out", "f4")));
    cr_assert_eq(result(me, reserve("out", "f4", DT_REG)), MESSAGE_EXISTS);
    cr_assert_eq(result(YOU, reserve("out", "f5", DT_DIR)), 0, "whatever it is");
}

Test(grant, what_was_taken_without_success_is_withdrawn)
{
    struct request_hold hold = {0};
    make_four();
    take_birth("f4", &hold);
    const uint32_t makes = post(YOU, reserve("out", "f4", DT_REG));
    tell(me, named(MESSAGE_ABORT, "out", "f4"));
    request_let_go(&hold);
    cr_assert_eq(result_of(makes), 0);
    take_birth("f5", &hold);
    const struct message late = with_entry(named(MESSAGE_COMMIT, "out", "f5"), DT_LNK, 7);
    cr_assert_not(request_end(&hold, &late), "what is no file takes a message");
    tell(me, late);
    request_let_go(&hold);
    assert_entry("out", "f5", RECORD_LIVE, 1000, 7);
    cr_assert_not(request_end(&hold, &late), "it is over");
}

Test(grant, an_grant_is_for_one_use)
{
    struct request_hold hold = {0}, other = {0};
    const struct message message = reserve("out", "f4", DT_REG);
    make_four();
    test_grant_take(&message, &hold);
    cr_assert_not(is_granted("f4"));
    tell(me, named(MESSAGE_ABORT, "out", "f4"));
    for (unsigned i = 5; i < 5 + 2 * CHANNEL_GRANTS; i++) { /* another is in its slot by now */
        grant_see();
        if (!is_granted(grant_numbered(i)))
            born_by(me, "out", grant_numbered(i));
        else
            born_unasked(grant_numbered(i));
    }
    take_birth(grant_numbered(5 + 2 * CHANNEL_GRANTS), &other);
    other.word = hold.word;
    const struct message end = with_entry(named(MESSAGE_COMMIT, "out", "f4"), DT_REG, 7);
    cr_assert_not(request_end(&other, &end), "of that slot, but of another time");
}

Test(grant, what_is_a_sequence_no_more_is_taken_back)
{
    make_four();
    cr_assert(is_granted("f4"));
    born_by(me, "out", "other");
    cr_assert_not(is_granted("f4"));
    cr_assert_eq(result(me, reserve("out", "f4", DT_REG)), 0, "it is still asked for ahead");
}

Test(grant, long_names_are_not_granted)
{
    char name[CHANNEL_GRANT_NAME + 8];
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "%0*d", CHANNEL_GRANT_NAME + 1, i);
        born_by(me, "out", name);
    }
    snprintf(name, sizeof name, "%0*d", CHANNEL_GRANT_NAME + 1, 6);
    cr_assert_not(is_granted(name));
    born_by(me, "out", name);
}

Test(grant, a_leaf_takes_no_more_for_that)
{
    shuntd.options.leaf_full = 6;
    make_four();
    cr_assert(is_granted("f4") && is_granted("f5"));
    cr_assert_not(is_granted("f6"), "that leaf is full");
    cr_assert_eq(leaf_holds("out", 0), 6);
    serving_settle();
    born_unasked("f4");
    born_unasked("f5");
    born_by(me, "out", "f6");
    cr_assert_eq(leaf_holds("out", 0), 6);
    assert_entry("out", "f6", RECORD_LIVE, 1001, ino_at(place_path("r/.shunt/b/n1.1/%s/1/f6", home_of("out")->record.mirror)));
}

/* Removing. */

static void remove_by(pid_t client, const char *name)
{
    const struct message *given = ask(client, named(MESSAGE_UNLINK, "out", name));
    cr_assert_eq(given->result, 0);
    cr_assert_eq(unlink(place_of(given, 0, "out", name)), 0);
    tell(client, named(MESSAGE_UNLINKED, "out", name));
}

Test(grant, unlinks_in_a_row_are_granted)
{
    struct request_hold hold = {0};
    for (unsigned i = 0; i < 10; i++)
        born_by(YOU, "out", grant_numbered(i));
    for (unsigned i = 0; i < 4; i++)
        remove_by(me, grant_numbered(i));
    cr_assert(is_removal_granted("f4") && is_removal_granted("f7"));
    assert_entry("out", "f4", RECORD_DYING, 1000, ino_at(place_path("r/.shunt/b/n1.1/%s/0/f4", home_of("out")->record.mirror)));
    cr_assert_eq(result(YOU, named(MESSAGE_LOOKUP, "out", "f4")), MESSAGE_EXISTS, "nobody has removed it");
    cr_assert_not(is_removal_granted("f4"));
    const struct message message = named(MESSAGE_UNLINK, "out", "f5");
    test_grant_take(&message, &hold);
    const uint32_t looks = post(YOU, named(MESSAGE_LOOKUP, "out", "f5"));
    cr_assert(waits(looks));
    cr_assert_eq(unlink(place_of(&answer.message, 0, "out", "f5")), 0);
    grant_done(&hold, MESSAGE_UNLINKED, "f5", 0);
    grant_see();
    cr_assert_eq(result_of(looks), MESSAGE_ABSENT);
    cr_assert(is_unknown("out", "f5"));
}

/* Renaming. */

/* From place to place, as the answer says. */
static void grant_move(const struct message *given, const char *old, const char *new)
{
    char source[PATH_MAX];
    strcpy(source, place_of(given, 0, "out", old));
    cr_assert_eq(sys_renameat2(AT_FDCWD, source, AT_FDCWD, place_of(given, 1, "out", new), RENAME_NOREPLACE), 0);
}

static void rename_by(pid_t client, const char *old, const char *new)
{
    const struct message *given = ask(client, two_names(MESSAGE_RENAME, "out", old, "out", new));
    cr_assert_eq(given->result, 0);
    grant_move(given, old, new);
    tell(client, two_names(MESSAGE_RENAMED, "out", old, "out", new));
}

static uint64_t grant_inos[40];

/* Files of another process, of which four are renamed, so that four more renames are granted. */
static void rename_four(void)
{
    for (unsigned i = 0; i < 40; i++)
        grant_inos[i] = born_by(YOU, "out", grant_numbered(i));
    for (int i = 0; i < 3; i++)
        grant_tick(); /* what was predicted for it is given back */
    for (unsigned i = 0; i < 4; i++)
        rename_by(me, grant_numbered(i), grant_renamed(i));
}

static void take_rename(unsigned number, struct request_hold *hold)
{
    const struct message message = two_names(MESSAGE_RENAME, "out", grant_numbered(number), "out", grant_renamed(number));
    test_grant_take(&message, hold);
    cr_assert_eq(answer.message.type, MESSAGE_RENAME_ANSWER);
    cr_assert_eq(answer.message.answer.entry[0].ino, grant_inos[number]);
}

static void rename_done(unsigned number, struct request_hold *hold)
{
    const struct message renamed = two_names(MESSAGE_RENAMED, "out", grant_numbered(number), "out", grant_renamed(number));
    cr_assert(request_end(hold, &renamed));
    request_let_go(hold);
}

static void rename_unasked(unsigned number)
{
    struct request_hold hold = {0};
    take_rename(number, &hold);
    grant_move(&answer.message, grant_numbered(number), grant_renamed(number));
    rename_done(number, &hold);
}

static bool is_rename_granted(unsigned number)
{
    return is_removal_granted(grant_numbered(number)) && is_granted(grant_renamed(number));
}

Test(grant, renames_in_a_row_are_granted)
{
    rename_four();
    for (unsigned i = 4; i < 8; i++) {
        cr_assert(is_rename_granted(i), "%u", i);
        assert_entry("out", grant_numbered(i), RECORD_DYING, 1000, grant_inos[i]);
        assert_entry("out", grant_renamed(i), RECORD_PENDING, 1000, 0);
    }
    cr_assert_not(is_rename_granted(8), "as many as came before");
    cr_assert_not(is_granted("f4") || is_removal_granted("to4"), "each as what it is");
}

Test(grant, a_rename_that_was_taken_and_done_is_seen)
{
    rename_four();
    const uint64_t renames = shuntd.counts.renames, requests = last_tag, prefetched = shuntd.counts.prefetched;
    for (unsigned i = 4; i < 8; i++)
        rename_unasked(i);
    assert_entry("out", "f4", RECORD_DYING, 1000, grant_inos[4]);
    grant_see();
    for (unsigned i = 4; i < 8; i++) {
        cr_assert(is_unknown("out", grant_numbered(i)));
        assert_entry("out", grant_renamed(i), RECORD_LIVE, 1000, grant_inos[i]);
    }
    cr_assert_eq(shuntd.counts.renames, renames + 4);
    cr_assert_eq(shuntd.counts.prefetched, prefetched + 8);
    cr_assert_eq(last_tag, requests, "nobody asked");
    cr_assert(is_rename_granted(8) && is_rename_granted(11), "the next ones");
    cr_assert_eq(leaf_holds("out", 0), 40);
}

Test(grant, renames_go_on_to_the_last_file)
{
    rename_four();
    for (unsigned i = 4; i < 40; i++) {
        if (is_rename_granted(i))
            rename_unasked(i);
        else
            rename_by(me, grant_numbered(i), grant_renamed(i));
        if (i % 3 == 0)
            grant_see();
    }
    grant_see();
    for (unsigned i = 0; i < 40; i++) {
        cr_assert(is_unknown("out", grant_numbered(i)));
        assert_entry("out", grant_renamed(i), RECORD_LIVE, 1000, grant_inos[i]);
    }
    cr_assert_eq(leaf_holds("out", 0), 40);
}

Test(grant, a_rename_that_is_only_granted_has_not_happened)
{
    rename_four();
    cr_assert_eq(result(YOU, named(MESSAGE_LOOKUP, "out", "f4")), MESSAGE_EXISTS);
    cr_assert_eq(result(YOU, named(MESSAGE_LOOKUP, "out", "to5")), MESSAGE_ABSENT);
    cr_assert_not(is_rename_granted(4) || is_rename_granted(5), "they were taken back, or might have happened by now");
    cr_assert(is_rename_granted(6));
    rename_by(me, "f4", "to4");
    rename_by(me, "f5", "to5");
    rename_unasked(6);
}

Test(grant, a_question_about_either_name_of_a_rename_waits_for_its_end)
{
    struct request_hold hold = {0};
    rename_four();
    take_rename(4, &hold);
    const uint32_t looks = post(YOU, named(MESSAGE_LOOKUP, "out", "f4")), makes = post(YOU, reserve("out", "to4", DT_REG));
    cr_assert(waits(looks) && waits(makes));
    grant_move(&answer.message, "f4", "to4");
    rename_done(4, &hold);
    grant_see();
    cr_assert_eq(result_of(looks), MESSAGE_ABSENT);
    cr_assert_eq(result_of(makes), MESSAGE_EXISTS);
    cr_assert_eq(answer_to(makes)->answer.entry[0].ino, grant_inos[4]);
}

Test(grant, either_name_of_a_rename_is_its_first_taker_s)
{
    rename_four();
    confirm(YOU, "out", "to4", make_at(place_of(ask(YOU, reserve("out", "to4", DT_REG)), 0, "out", "to4")));
    cr_assert_eq(result(YOU, named(MESSAGE_UNLINK, "out", "f5")), 0);
    tell(YOU, named(MESSAGE_UNLINKED, "out", "f5"));
    cr_assert_not(is_rename_granted(4) || is_rename_granted(5));
    const struct message *given = ask(me, two_names(MESSAGE_RENAME, "out", "f4", "out", "to4"));
    cr_assert_eq(given->result, MESSAGE_EXISTS);
    tell(me, two_names(MESSAGE_RENAMED, "out", "f4", "out", "to4"));
    cr_assert_eq(result(me, two_names(MESSAGE_RENAME, "out", "f5", "out", "to5")), MESSAGE_ABSENT);
}

Test(grant, a_rename_that_fails_changes_nothing)
{
    struct request_hold hold = {0};
    rename_four();
    take_rename(4, &hold);
    struct message renamed = two_names(MESSAGE_RENAMED, "out", "f4", "out", "to4");
    renamed.result = -EACCES;
    cr_assert_not(request_end(&hold, &renamed), "it takes a message");
    tell(me, renamed);
    request_let_go(&hold);
    assert_entry("out", "f4", RECORD_LIVE, 1000, grant_inos[4]);
    cr_assert(is_unknown("out", "to4"));
    cr_assert_eq(leaf_holds("out", 0), 40);
}

Test(grant, a_client_ends_with_renames)
{
    struct request_hold begun = {0}, moved = {0};
    rename_four();
    rename_unasked(4);
    take_rename(5, &moved);
    grant_move(&answer.message, "f5", "to5");
    take_rename(6, &begun);
    client_ends(me);
    for (unsigned i = 4; i < 6; i++) {
        cr_assert(is_unknown("out", grant_numbered(i)));
        assert_entry("out", grant_renamed(i), RECORD_LIVE, 1000, grant_inos[i]);
    }
    for (unsigned i = 6; i < 8; i++) {
        assert_entry("out", grant_numbered(i), RECORD_LIVE, 1000, grant_inos[i]);
        cr_assert(is_unknown("out", grant_renamed(i)));
    }
    cr_assert_eq(home_of("out")->operations, 0);
    cr_assert_not(request_has_grants(channel));
}

Test(grant, other_renames_take_them_back)
{
    rename_four();
    cr_assert(is_rename_granted(4));
    rename_by(me, "f20", "other");
    cr_assert_not(is_rename_granted(4));
    rename_by(me, "f4", "to4");
}

Test(grant, a_rename_that_replaces_something_is_not_granted)
{
    born_by(YOU, "out", "to5");
    rename_four();
    cr_assert(is_rename_granted(4));
    cr_assert_not(is_rename_granted(5) || is_rename_granted(6));
}

Test(grant, a_rename_that_may_leave_its_leaf_is_not_granted)
{
    rename_four();
    cr_assert_eq(result(YOU, about(MESSAGE_WATCH, "out")), 0);
    cr_assert_not(is_rename_granted(4));
}

Test(grant, a_rename_of_what_the_thread_has_just_made_is_not_granted)
{
    for (unsigned i = 0; i < 8; i++) {
        grant_see();
        if (is_granted(grant_numbered(i)))
            born_unasked(grant_numbered(i));
        else
            born_by(me, "out", grant_numbered(i));
        grant_see();
        rename_by(me, grant_numbered(i), grant_renamed(i));
    }
    cr_assert_not(is_rename_granted(8));
}

Test(grant, renames_that_nobody_takes_are_given_back)
{
    rename_four();
    grant_tick();
    grant_tick();
    grant_tick();
    cr_assert_not(is_rename_granted(4));
    assert_entry("out", "f4", RECORD_LIVE, 1000, grant_inos[4]);
    cr_assert(is_unknown("out", "to4"));
    cr_assert_eq(home_of("out")->operations, 0);
    cr_assert_not(request_has_grants(channel));
}

Test(grant, renames_are_known_when_homes_begin_again)
{
    struct request_hold hold = {0};
    rename_four();
    rename_unasked(4);
    take_rename(5, &hold);
    cr_assert_eq(prefetch_forget(&shuntd), 0);
    serving_end();
    assert_entry("out", "to4", RECORD_LIVE, 1000, grant_inos[4]);
    cr_assert_eq(home_of("out")->operations, 2, "what was taken");
    cr_assert_not(is_rename_granted(6));
    grant_move(&answer.message, "f5", "to5");
    rename_done(5, &hold);
    grant_see();
    assert_entry("out", "to5", RECORD_LIVE, 1000, grant_inos[5]);
    cr_assert_eq(home_of("out")->operations, 0);
}

/* Checkpoints: each is made and then renamed. */

/* May it be renamed by the grant by which it was made? */
static bool grant_goes_on(unsigned number)
{
    return is_granted(grant_renamed(number)) && !is_removal_granted(grant_numbered(number));
}

/* What the daemon sees when it comes by. */
static void grant_look(void)
{
    cr_assert_eq(grant_see_qp(&shuntd, serving_qp(me)), 0);
    serving_end();
    serving_settle();
}

/* By grants, as far as there are any. */
static void checkpoint_by(unsigned i)
{
    uint64_t ino;
    grant_see();
    if (is_granted(grant_numbered(i)))
        ino = born_unasked(grant_numbered(i));
    else
        ino = born_by(me, "out", grant_numbered(i));
    grant_inos[i] = ino;
    if (grant_goes_on(i))
        rename_unasked(i);
    else
        rename_by(me, grant_numbered(i), grant_renamed(i));
}

static void checkpoint_ten(void)
{
    for (unsigned i = 0; i < 10; i++)
        checkpoint_by(i);
    grant_see();
}

/* f10 has been renamed, which the daemon has not seen yet, and f11 is being renamed. */
static void checkpoint_and_begin_another(struct request_hold *hold)
{
    checkpoint_ten();
    grant_inos[10] = born_unasked("f10");
    rename_unasked(10);
    grant_inos[11] = born_unasked("f11");
    take_rename(11, hold);
}

static void assert_moved(unsigned i)
{
    cr_assert(is_unknown("out", grant_numbered(i)), "%u", i);
    assert_entry("out", grant_renamed(i), RECORD_LIVE, 1000, grant_inos[i]);
}

static void assert_made(unsigned i)
{
    assert_entry("out", grant_numbered(i), RECORD_LIVE, 1000, grant_inos[i]);
}

static void assert_not_moved(unsigned i)
{
    assert_made(i);
    cr_assert(is_unknown("out", grant_renamed(i)), "%u", i);
}

Test(grant, a_create_is_granted_with_the_rename_that_follows)
{
    checkpoint_ten();
    const uint64_t requests = last_tag, renames = shuntd.counts.renames, creates = home_of("out")->leaves.creates;
    cr_assert(is_granted("f10") && is_granted("to10"), "nobody has made either");
    assert_entry("out", "to10", RECORD_PENDING, 1000, 0);
    for (unsigned i = 10; i < 14; i++) {
        grant_inos[i] = born_unasked(grant_numbered(i));
        cr_assert(is_granted(grant_renamed(i)), "not renamed yet");
        rename_unasked(i);
        cr_assert_not(is_granted(grant_renamed(i)));
    }
    grant_see();
    for (unsigned i = 0; i < 14; i++)
        assert_moved(i);
    cr_assert_eq(last_tag, requests, "nobody asked");
    cr_assert_eq(shuntd.counts.renames, renames + 4);
    cr_assert_eq(home_of("out")->leaves.creates, creates + 4);
    for (int i = 0; i < 3; i++)
        grant_tick(); /* what nobody takes is given back, and counts no more */
    cr_assert_eq(leaf_holds("out", 0), 14);
}

Test(grant, what_was_made_is_left_for_its_rename)
{
    checkpoint_ten();
    grant_inos[10] = born_unasked("f10");
    grant_look();
    assert_entry("out", "f10", RECORD_PENDING, 1000, 0);
    rename_unasked(10);
    grant_look();
    assert_moved(10);
}

Test(grant, a_thread_that_makes_another_name_renames_the_one_before_by_a_message)
{
    checkpoint_ten();
    grant_inos[10] = born_unasked("f10");
    grant_look();
    grant_inos[11] = born_unasked("f11");
    grant_look();
    assert_made(10);
    cr_assert_not(grant_goes_on(10));
    rename_by(me, "f10", "to10");
    assert_moved(10);
    rename_unasked(11);
    grant_see();
    assert_moved(11);
}

Test(grant, a_checkpoint_that_is_only_granted_has_not_begun)
{
    checkpoint_ten();
    cr_assert_eq(result(YOU, named(MESSAGE_LOOKUP, "out", "to10")), MESSAGE_ABSENT);
    cr_assert_eq(result(YOU, named(MESSAGE_LOOKUP, "out", "f11")), MESSAGE_ABSENT);
    cr_assert_not(is_granted("f10") || is_granted("to10") || is_granted("f11") || is_granted("to11"), "taken back");
    for (unsigned i = 10; i < 30; i++)
        checkpoint_by(i);
    grant_see();
    for (unsigned i = 10; i < 30; i++)
        assert_moved(i);
    cr_assert(is_granted("f30") && is_granted("to30"), "again");
}

static const char *const checkpoint_names[] = {"f10", "to10"};

Test(grant, a_look_at_either_name_finds_what_was_made)
{
    static const int are[] = {MESSAGE_EXISTS, MESSAGE_ABSENT};
    for (unsigned i = 0; i < 2; i++) {
        checkpoint_ten();
        grant_inos[10] = born_unasked("f10");
        cr_assert_eq(result(YOU, named(MESSAGE_LOOKUP, "out", checkpoint_names[i])), are[i]);
        assert_made(10);
        cr_assert_not(grant_goes_on(10));
        rename_by(me, "f10", "to10");
        assert_moved(10);
        grant_finish();
        grant_init();
    }
}

Test(grant, a_look_at_either_name_waits_for_a_rename_that_was_taken)
{
    struct request_hold hold = {0};
    checkpoint_ten();
    grant_inos[10] = born_unasked("f10");
    take_rename(10, &hold);
    const uint32_t old = post(YOU, named(MESSAGE_LOOKUP, "out", "f10")), new = post(YOU, named(MESSAGE_LOOKUP, "out", "to10"));
    cr_assert(waits(old) && waits(new));
    grant_move(&answer.message, "f10", "to10");
    rename_done(10, &hold);
    grant_see();
    cr_assert_eq(result_of(old), MESSAGE_ABSENT);
    cr_assert_eq(result_of(new), MESSAGE_EXISTS);
    assert_moved(10);
}

/* While it is being made its rename is somebody else's; the process says by messages how it went. */
Test(grant, a_name_that_is_being_made_is_renamed_by_a_message_once_somebody_looks)
{
    struct request_hold hold = {0};
    checkpoint_ten();
    take_birth("f10", &hold);
    char at[PATH_MAX];
    strcpy(at, place_of(&answer.message, 0, "out", "f10"));
    const uint32_t makes = post(YOU, reserve("out", "to10", DT_REG));
    cr_assert_eq(result_of(makes), 0);
    confirm(YOU, "out", "to10", make_at(place_of(answer_to(makes), 0, "out", "to10")));
    grant_inos[10] = make_at(at);
    const struct message made = with_entry(named(MESSAGE_COMMIT, "out", "f10"), DT_REG, grant_inos[10]);
    cr_assert_not(request_end(&hold, &made));
    tell(me, made);
    request_let_go(&hold);
    cr_assert_not(grant_goes_on(10));
    assert_entry("out", "f10", RECORD_LIVE, 1000, grant_inos[10]);
    const struct message *given = ask(me, two_names(MESSAGE_RENAME, "out", "f10", "out", "to10"));
    cr_assert_eq(given->result, MESSAGE_EXISTS);
}

Test(grant, a_checkpoint_that_cannot_be_made_leaves_nothing)
{
    struct request_hold hold = {0};
    checkpoint_ten();
    take_birth("f10", &hold);
    const struct message failed = named(MESSAGE_ABORT, "out", "f10");
    cr_assert_not(request_end(&hold, &failed));
    tell(me, failed);
    request_let_go(&hold);
    cr_assert(is_unknown("out", "f10"));
    cr_assert_eq(result(YOU, named(MESSAGE_LOOKUP, "out", "to10")), MESSAGE_ABSENT);
}

Test(grant, a_checkpoint_whose_rename_fails_is_there_by_its_first_name)
{
    struct request_hold hold = {0};
    checkpoint_ten();
    grant_inos[10] = born_unasked("f10");
    take_rename(10, &hold);
    struct message renamed = two_names(MESSAGE_RENAMED, "out", "f10", "out", "to10");
    renamed.result = -EACCES;
    cr_assert_not(request_end(&hold, &renamed), "it takes a message");
    tell(me, renamed);
    request_let_go(&hold);
    assert_not_moved(10);
}

Test(grant, a_client_ends_with_checkpoints)
{
    struct request_hold hold = {0};
    checkpoint_and_begin_another(&hold);
    grant_move(&answer.message, "f11", "to11");
    client_ends(me);
    assert_moved(10);
    assert_moved(11);
    cr_assert_eq(home_of("out")->operations, 0);
    cr_assert_not(request_has_grants(channel));
    cr_assert_eq(leaf_holds("out", 0), 12);
}

Test(grant, a_client_ends_before_its_rename)
{
    struct request_hold hold = {0};
    checkpoint_ten();
    grant_inos[10] = born_unasked("f10");
    take_rename(10, &hold);
    client_ends(me);
    assert_not_moved(10);
    cr_assert_eq(home_of("out")->operations, 0);
    cr_assert_eq(leaf_holds("out", 0), 11);
}

Test(grant, a_client_ends_between_create_and_rename)
{
    checkpoint_ten();
    grant_inos[10] = born_unasked("f10");
    client_ends(me);
    assert_not_moved(10);
    cr_assert_eq(home_of("out")->operations, 0);
    cr_assert_not(request_has_grants(channel));
}

Test(grant, a_checkpoint_that_takes_long_is_seen_with_the_tick)
{
    checkpoint_ten();
    grant_inos[10] = born_unasked("f10");
    grant_tick();
    assert_made(10);
    grant_tick();
    grant_tick();
    assert_not_moved(10);
    rename_by(me, "f10", "to10");
    assert_moved(10);
    cr_assert_eq(home_of("out")->operations, 0);
}

Test(grant, checkpoints_are_known_when_homes_begin_again)
{
    struct request_hold hold = {0};
    checkpoint_and_begin_another(&hold);
    cr_assert_eq(prefetch_forget(&shuntd), 0);
    serving_end();
    assert_moved(10);
    cr_assert_eq(home_of("out")->operations, 2, "what is being renamed");
    cr_assert_not(is_granted("f12"));
    grant_move(&answer.message, "f11", "to11");
    rename_done(11, &hold);
    grant_see();
    assert_moved(11);
    cr_assert_eq(home_of("out")->operations, 0);
}

/* Of what was never made. */
static void grant_say_moved(const char *name)
{
    int fd = open(place_path("run/channel"), O_RDWR | O_CLOEXEC);
    struct channel *memory = mmap(NULL, CHANNEL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(memory, MAP_FAILED);
    struct channel_grant *grant = memory->qp[serving_qp(me)].grant;
    while (grant->name_length != strlen(name) || memcmp(grant->name, name, grant->name_length) != 0 ||
           CHANNEL_GRANT_STATE(grant->word) != CHANNEL_GRANTED)
        grant++;
    grant->made = 0;
    grant->word += CHANNEL_MOVED - CHANNEL_GRANTED;
    munmap(memory, CHANNEL_SIZE);
    close(fd);
}

Test(grant, a_process_that_says_what_is_not_so_harms_itself_alone)
{
    checkpoint_ten();
    grant_say_moved("f10");
    grant_see();
    const uint32_t looks = post(YOU, named(MESSAGE_LOOKUP, "out", "to10"));
    cr_assert_eq(result_of(looks), MESSAGE_ABSENT);
    client_ends(me);
    cr_assert(is_unknown("out", "f10") && is_unknown("out", "to10"));
    cr_assert_eq(home_of("out")->operations, 0);
}

/* Times. */

static uint64_t grant_changed(void)
{
    struct record_dir record;
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    return record.changed;
}

Test(grant, a_directory_changes_when_its_grants_are_taken)
{
    make_four();
    const uint64_t before = grant_changed();
    while (clock_files() == before)
        usleep(1000);
    cr_assert(request_has_grants(channel));
    const uint64_t from = clock_files();
    born_unasked("f4");
    const uint64_t to = clock_files();
    cr_assert_eq(grant_changed(), before, "a process that wants to know asks");
    while (clock_files() == to)
        usleep(1000);
    cr_assert_eq(result(YOU, (struct message){.type = MESSAGE_PING}), 0);
    cr_assert(from <= grant_changed() && grant_changed() <= to);
}

Test(grant, times_that_are_set_win_over_grants_that_were_taken_before)
{
    make_four();
    born_unasked("f4");
    const uint32_t settle = post(YOU, about(MESSAGE_SETTLE, "out"));
    serving_settle();
    cr_assert_eq(result_of(settle), 0);
    grant_see();
    cr_assert_eq(grant_changed(), 0, "no change since");
}

/* Ends. */

Test(grant, a_client_ends_with_grants)
{
    struct request_hold hold = {0}, made = {0};
    make_four();
    uint64_t done_ino = born_unasked("f4");
    take_birth("f5", &made);
    uint64_t ino = make_at(place_of(&answer.message, 0, "out", "f5"));
    take_birth("f6", &hold);
    client_ends(me);
    assert_entry("out", "f4", RECORD_LIVE, 1000, done_ino);
    assert_entry("out", "f5", RECORD_LIVE, 1000, ino);
    cr_assert(is_unknown("out", "f6") && is_unknown("out", "f7"));
    cr_assert_not(is_granted("f7"));
    cr_assert_eq(home_of("out")->operations, 0);
    cr_assert_eq(leaf_holds("out", 0), 6);
    cr_assert_not(request_has_grants(channel));
}

Test(grant, what_nobody_takes_is_given_back)
{
    make_four();
    uint64_t ino = born_unasked("f4");
    grant_tick();
    assert_entry("out", "f4", RECORD_LIVE, 1000, ino);
    cr_assert(is_granted("f5"), "its process came by");
    grant_tick();
    grant_tick();
    cr_assert_not(is_granted("f5"));
    cr_assert(is_unknown("out", "f5"));
    cr_assert_eq(home_of("out")->operations, 0);
    cr_assert_eq(leaf_holds("out", 0), 5);
    cr_assert_not(request_has_grants(channel));
}

Test(grant, what_was_taken_is_not_given_back)
{
    struct request_hold hold = {0};
    make_four();
    take_birth("f5", &hold);
    for (int i = 0; i < 4; i++)
        grant_tick();
    assert_entry("out", "f5", RECORD_PENDING, 1000, 0);
    uint64_t ino = make_at(place_of(&answer.message, 0, "out", "f5"));
    grant_done(&hold, MESSAGE_COMMIT, "f5", ino);
    grant_see();
    assert_entry("out", "f5", RECORD_LIVE, 1000, ino);
}

Test(grant, all_that_is_held_is_known_when_homes_begin_again)
{
    struct request_hold hold = {0};
    make_four();
    uint64_t ino = born_unasked("f4");
    take_birth("f5", &hold);
    cr_assert_eq(prefetch_forget(&shuntd), 0);
    serving_end();
    assert_entry("out", "f4", RECORD_LIVE, 1000, ino);
    cr_assert_eq(home_of("out")->operations, 1, "what was taken");
    cr_assert_not(is_granted("f6"));
    tell(me, named(MESSAGE_ABORT, "out", "f5"));
    cr_assert_eq(home_of("out")->operations, 0);
}

Test(grant, a_watched_directory_grants_nothing)
{
    make_four();
    born_unasked("f4");
    cr_assert_eq(result(YOU, about(MESSAGE_WATCH, "out")), 0);
    cr_assert_not(is_granted("f5"));
    const struct message *given = ask(me, reserve("out", "f5", DT_REG));
    cr_assert(given->result == 0 && given->answer.place[0].length == 0, "in the trunk");
}

Test(grant, a_directory_with_nothing_but_grants_is_removed)
{
    make_four();
    for (unsigned i = 0; i < 4; i++)
        remove_by(YOU, grant_numbered(i));
    struct message close = named(MESSAGE_RMDIR, ".", "out");
    close.rmdir.child = id_of("out");
    load(".");
    const uint32_t closes = post(YOU, close);
    serving_settle();
    cr_assert_eq(result_of(closes), 0);
    cr_assert_not(is_granted("f4"));
}

Test(grant, a_directory_with_a_file_that_was_made_by_a_grant_is_not_empty)
{
    make_four();
    for (unsigned i = 0; i < 4; i++)
        remove_by(YOU, grant_numbered(i));
    born_unasked("f4");
    struct message close = named(MESSAGE_RMDIR, ".", "out");
    close.rmdir.child = id_of("out");
    load(".");
    const uint32_t closes = post(YOU, close);
    serving_settle();
    cr_assert_eq(result_of(closes), MESSAGE_NOT_EMPTY);
}
