/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Directories that nobody uses are evicted, and only these; what stays of them, and what comes back. */

#include "coordinator/evict.h"

#include <dirent.h>
#include <sys/statvfs.h>

#include "coordinator/dir_times.h"
#include "ops_fixture.h"

#define TURN CLOCK_SECOND /* more than the hand waits between two visits */

static uint64_t evict_loads;

static void evict_init(void)
{
    serving_init();
    shuntd.now = clock_monotonic();
    load(".");
    load("out");
    load("in");
    shuntd.options.index_limit = 1 << 20;
    evict_loads = shuntd.counts.loads;
}

TestSuite(evict, .init = evict_init, .fini = serving_finish, .timeout = 60);

/* The hand goes round. */
static void evict_turn(void)
{
    shuntd.now += TURN;
    cr_assert_eq(evict_all_idle(&shuntd), 0);
    serving_end();
    serving_settle();
}

static bool evict_is_known(const char *directory)
{
    struct record_dir record;
    int code = record_of(id_of(directory), &record);
    cr_assert(code == 0 || code == -ENOENT);
    return code == 0;
}

/* The times of directories are told, and written: else these are in use. */
static void evict_let_rest(void)
{
    while (dir_times_due(&shuntd) != UINT64_MAX) {
        shuntd.now = clock_monotonic() + 10 * CLOCK_SECOND;
        cr_assert_eq(dir_times_step(&shuntd), 0);
        serving_settle();
    }
}

Test(evict, first_it_is_hidden_then_forgotten)
{
    born_in_trunk("out", "a");
    evict_turn();
    cr_assert(!evict_is_known("out") && !is_unknown("out", "a"), "its names are there, for any that asks for it");
    cr_assert(home_of("out")->complete && shuntd.counts.evictions == 0);
    evict_turn(); /* the hand has not seen yet that it was used */
    evict_turn();
    cr_assert(is_unknown("out", "a") && home_of("out") == NULL && shuntd.counts.evictions == 3);
    load("out");
    cr_assert(!is_unknown("out", "a"));
    cr_assert(shuntd.counts.loads == evict_loads + 1 && shuntd.counts.returns == 1);
}

Test(evict, who_asks_for_it_in_time_keeps_it)
{
    born_in_trunk("out", "a");
    for (int i = 0; i < 4; i++) {
        evict_turn();
        cr_assert(!evict_is_known("out") && !is_unknown("out", "a"));
        load("out");
        cr_assert(evict_is_known("out"));
    }
    cr_assert_eq(shuntd.counts.loads, evict_loads, "it need not be read again");
    cr_assert(home_of("in") == NULL);
}

Test(evict, one_that_is_asked_for_again_and_again_stays_for_longer)
{
    const unsigned tick = CLOCK_SECOND / 100;
    for (unsigned i = 0; i < 6; i++) {
        uint64_t stays = 0;
        load("out");
        for (; evict_is_known("out"); stays += tick) {
            shuntd.now += tick;
            cr_assert_eq(evict_all_idle(&shuntd), 0);
        }
        cr_assert(i == 0 || stays >= CLOCK_SECOND / 40 << i, "%u: %lu ns", i, stays);
        cr_assert(stays < (CLOCK_SECOND / 40 << i) + CLOCK_SECOND / 3, "%u: %lu ns", i, stays);
    }
    shuntd.now += 10 * CLOCK_SECOND;
    for (int i = 0; i < 3; i++)
        evict_turn();
    cr_assert(home_of("out") == NULL, "nobody asked for it");
}

Test(evict, not_before_the_hand_comes_by_again)
{
    for (int i = 0; i < 10; i++)
        cr_assert_eq(evict_all_idle(&shuntd), 0);
    cr_assert(evict_is_known("out"));
}

Test(evict, nothing_is_as_long_as_there_is_room)
{
    for (int i = 0; i < 10; i++) {
        shuntd.now += TURN;
        cr_assert_eq(evict_step(&shuntd), 0);
    }
    cr_assert(evict_is_known("out") && evict_is_known("in") && evict_due(&shuntd) == UINT64_MAX);
    cr_assert_eq(evict_make_room(&shuntd, 1 << 20), 0);
    cr_assert(!evict_is_known("out"), "for so much there is none");
}

Test(evict, without_a_limit_nothing_is)
{
    shuntd.options.index_limit = 0;
    shuntd.now += TURN;
    cr_assert_eq(evict_make_room(&shuntd, 1ull << 40), 0);
    cr_assert(evict_is_known("out") && evict_due(&shuntd) == UINT64_MAX);
}

Test(evict, what_is_under_way_stays)
{
    const uint64_t blocked = shuntd.counts.blocked;
    cr_assert_eq(result(ME, reserve("out", "a", DT_FIFO)), 0);
    for (int i = 0; i < 5; i++)
        evict_turn();
    cr_assert(evict_is_known("out") && home_of("out")->operations == 1);
    cr_assert_eq(mkfifo(place_path("r/out/a"), 0644), 0);
    tell(ME, with_entry(named(MESSAGE_COMMIT, "out", "a"), DT_FIFO, ino_at(place_path("r/out/a"))));
    for (int i = 0; i < 3; i++)
        evict_turn();
    cr_assert(home_of("out") == NULL);
    load("out");
    assert_entry("out", "a", RECORD_LIVE, 0, ino_at(place_path("r/out/a")));
    cr_assert_eq(shuntd.counts.blocked, blocked);
}

Test(evict, what_another_daemon_holds_stays)
{
    const struct name_question question = {
        .op = NAME_RESERVE, .member = 7, .id = 1, .dir = id_of("out"), .entry.type = DT_FIFO, .name = "a", .length = 1};
    struct name_answer answer;
    cr_assert_eq(home_ask(shuntd.home, &question, &answer), 0);
    for (int i = 0; i < 5; i++)
        evict_turn();
    cr_assert(home_of("out")->claims == 1 && home_of("out")->complete);
}

Test(evict, one_that_is_watched_stays)
{
    cr_assert_eq(result(ME, about(MESSAGE_WATCH, "out")), 0);
    for (int i = 0; i < 5; i++)
        evict_turn();
    cr_assert(home_of("out") != NULL && home_of("in") == NULL);
}

Test(evict, one_whose_times_are_to_be_written_stays)
{
    born("out", "a");
    cr_assert(!list_empty(&home_of("out")->unwritten));
    for (int i = 0; i < 5; i++)
        evict_turn();
    cr_assert(evict_is_known("out"));
    evict_let_rest();
    for (int i = 0; i < 3; i++)
        evict_turn();
    cr_assert(!evict_is_known("out") && is_unknown("out", "a"));
}

Test(evict, its_times_are_as_before)
{
    struct record_dir before, after;
    born("out", "a");
    evict_let_rest();
    cr_assert_eq(record_of(id_of("out"), &before), 0);
    cr_assert(before.changed != 0 && before.settled != 0);
    for (int i = 0; i < 3; i++)
        evict_turn();
    load("out");
    cr_assert_eq(record_of(id_of("out"), &after), 0);
    cr_assert(after.changed == before.changed && after.settled == before.settled && after.stood == before.stood);
    cr_assert(after.marker == before.marker && strcmp(after.mirror, before.mirror) == 0);
}

Test(evict, where_its_files_are_is_known)
{
    born("out", "a");
    const struct home_dir *dir = home_of("out");
    char mirror[RECORD_MIRROR_MAX];
    strcpy(mirror, dir->record.mirror);
    evict_let_rest();
    for (int i = 0; i < 3; i++)
        evict_turn();
    struct message question = {.type = MESSAGE_PLACE, .name = message_text(mirror, strlen(mirror))};
    const struct message *answer = ask(ME, question);
    cr_assert(answer->result == 0 && dirid_equal(answer->dir, id_of("out")));
}

Test(evict, its_leaves_are_counted_once)
{
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i * i * i % 101); /* in no row that would be looked ahead */
        born("out", name);
    }
    evict_let_rest();
    for (int i = 0; i < 3; i++)
        evict_turn();
    load("out");
    cr_assert_eq(leaf_holds("out", 0), 20);
    born("out", "g");
    assert_entry("out", "g", RECORD_LIVE, 1001, ino_at(place_path("r/.shunt/b/n1.1/%s/1/g", home_of("out")->record.mirror)));
}

Test(evict, no_number_comes_again)
{
    const uint64_t before = home_of("out")->load_number;
    for (int i = 0; i < 3; i++)
        evict_turn();
    cr_assert(home_of("out") == NULL);
    load("out");
    cr_assert_gt(home_of("out")->load_number, before, "word of the earlier load would be taken for the later one's");
}

Test(evict, one_that_is_removed_is_loaded_before)
{
    for (int i = 0; i < 3; i++)
        evict_turn();
    load(".");
    struct message close = named(MESSAGE_RMDIR, ".", "out");
    close.rmdir.child = id_of("out");
    cr_assert_eq(result(ME, close), MESSAGE_NOT_LOADED);
    load("out");
    cr_assert_eq(result(ME, close), 0);
    for (int i = 0; i < 5; i++)
        evict_turn();
    cr_assert(home_of("out") != NULL && home_of("out")->frozen, "it may be removed yet");
    struct message abort = close;
    abort.type = MESSAGE_ABORT;
    tell(ME, abort);
}

Test(evict, what_was_made_and_not_used_is_read_when_it_is)
{
    born_directory(".", "new");
    for (int i = 0; i < 3; i++)
        evict_turn();
    cr_assert(home_of("new") == NULL);
    cr_assert_eq(mkfifo(place_path("r/new/p"), 0644), 0);
    load("new");
    cr_assert(!is_unknown("new", "p"));
}

/* Its maker is slow to say that it has made it: it was used, and forgotten, before. */
Test(evict, what_was_used_before_it_was_said_to_be_new_is_read)
{
    cr_assert_eq(result(ME, reserve(".", "new", DT_DIR)), 0);
    cr_assert_eq(mkdir(in_root("new"), 0755), 0);
    load("new");
    born_in_trunk("new", "a");
    for (int i = 0; i < 3; i++)
        evict_turn();
    cr_assert(home_of("new") == NULL);
    struct message commit = with_entry(named(MESSAGE_COMMIT, ".", "new"), DT_DIR, ino_at(in_root("new")));
    commit.commit.child = id_of("new");
    tell(ME, commit);
    load("new");
    cr_assert(!is_unknown("new", "a"));
}

Test(evict, one_above_the_limit_is_loaded_and_told)
{
    for (int i = 0; i < 300; i++)
        cr_assert_eq(mkfifo(place_path("r/in/%0250d", i), 0644), 0);
    shuntd.options.index_limit = 100 << 10;
    for (int i = 0; i < 3; i++)
        evict_turn();
    load("in");
    cr_assert_eq(shuntd.counts.oversized, 1);
    struct index_size size;
    index_measure(shuntd.index, &size);
    cr_assert(size.entries >= 300 && size.bytes_used > 63 << 10);
    cr_assert_neq(evict_due(&shuntd), UINT64_MAX);
}

Test(evict, the_limit)
{
    struct statvfs room;
    cr_assert_eq(evict_limit(5, place), 5);
    cr_assert_eq(statvfs(place, &room), 0);
    const uint64_t quarter = (uint64_t)room.f_blocks * room.f_frsize / 4;
    cr_assert_eq(evict_limit(0, place), quarter > 64 << 20 ? quarter : 64 << 20);
    cr_assert_eq(evict_limit(0, "/none"), 64 << 20);
}
