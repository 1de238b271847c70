/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What concerns a directory as a whole: its end, its attributes, its times. */

#include "ops/ops.h"
#include "coordinator/dir_times.h"

#include <dirent.h>

#include "membership/recovery.h"
#include "ops_fixture.h"
#include "wire/page.h"

static void directory_init(void)
{
    serving_init();
    load(".");
    load("out");
    load("in");
}

TestSuite(ops_rmdir, .init = directory_init, .fini = serving_finish, .timeout = 60);
TestSuite(serve_directory, .init = directory_init, .fini = serving_finish, .timeout = 60);

/* RMDIR for r/NAME. */
static struct message close_message(const char *name)
{
    struct message message = named(MESSAGE_RMDIR, ".", name);
    message.rmdir.child = id_of(name);
    return message;
}

static size_t mirrors_of(const char *branch)
{
    return place_count(place_path("r/.shunt/b/%s", branch) + strlen(place) + 1);
}

/* A file made and removed: `out` has a marker and a mirror, and no names. */
static void redirected_once(void)
{
    born("out", "a");
    const struct message *answer = ask(ME, named(MESSAGE_UNLINK, "out", "a"));
    cr_assert_eq(unlink(place_of(answer, 0, "out", "a")), 0);
    tell(ME, named(MESSAGE_UNLINKED, "out", "a"));
    cr_assert(place_has("r/out/.shunt-dir") && mirrors_of("n1.1") == 1);
}

Test(ops_rmdir, not_while_a_name_is_in_a_branch)
{
    uint64_t ino = born("out", "a");
    cr_assert_eq(place_count("r/out"), 1, "natively it has its marker alone");
    cr_assert_eq(result(ME, close_message("out")), MESSAGE_NOT_EMPTY);
    cr_assert(place_has("r/out/.shunt-dir") && operation_count(shuntd.home) == 0);
    assert_entry(".", "out", RECORD_LIVE, 0, id_of("out").ino);
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
}

Test(ops_rmdir, nor_with_one_in_the_trunk)
{
    born_directory("out", "sub");
    cr_assert_eq(result(ME, close_message("out")), MESSAGE_NOT_EMPTY);
}

Test(ops_rmdir, a_plain_directory)
{
    struct record_dir record;
    struct dirid id = id_of("out");
    cr_assert_eq(result(ME, close_message("out")), 0);
    assert_entry(".", "out", RECORD_DYING, 0, id.ino);
    cr_assert_eq(rmdir(place_path("r/out")), 0);
    tell(ME, named(MESSAGE_UNLINKED, ".", "out"));
    cr_assert(is_unknown(".", "out"));
    cr_assert_eq(record_of(id, &record), -ENOENT);
    cr_assert_null(home_dir_find(shuntd.home, id));
    cr_assert_eq(operation_count(shuntd.home), 0);
}

Test(ops_rmdir, mirrors_and_marker_go_first)
{
    struct record_dir record;
    redirected_once();
    place_directory(place_path("r/.shunt/b/n2.1/%s/4", home_of("out")->record.mirror) + strlen(place) + 1);
    uint32_t tag = post(ME, close_message("out"));
    cr_assert(waits(tag));
    serving_settle();
    cr_assert_eq(result_of(tag), 0);
    cr_assert_eq(place_count("r/out"), 0);
    cr_assert(mirrors_of("n1.1") == 0 && mirrors_of("n2.1") == 0, "in every branch");
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    cr_assert(record.flags == RECORD_LOADED && record.marker == 0 && record.mirror[0] == '\0');
    cr_assert_eq(rmdir(place_path("r/out")), 0);
}

Test(ops_rmdir, a_directory_that_was_kept_takes_creates_again)
{
    redirected_once();
    cr_assert_eq(result(ME, close_message("out")), 0);
    uint32_t birth = post(YOU, reserve("out", "b", DT_REG));
    serving_settle();
    cr_assert(waits(birth), "not while it may go");
    tell(ME, named(MESSAGE_ABORT, ".", "out"));
    cr_assert_eq(result_of(birth), 0);
    assert_entry(".", "out", RECORD_LIVE, 0, id_of("out").ino);
    assert_entry("out", "b", RECORD_PENDING, 1000, 0);
    cr_assert(place_has("r/out/.shunt-dir") && mirrors_of("n1.1") == 1, "made again");
}

Test(ops_rmdir, who_waits_for_a_directory_that_goes)
{
    cr_assert_eq(result(ME, close_message("out")), 0);
    uint32_t birth = post(YOU, reserve("out", "b", DT_REG)), look = post(YOU, named(MESSAGE_LOOKUP, ".", "out"));
    cr_assert(waits(birth) && waits(look));
    cr_assert_eq(rename(place_path("r/out"), place_path("aside")), 0);
    tell(ME, named(MESSAGE_UNLINKED, ".", "out"));
    cr_assert_eq(result_of(birth), MESSAGE_NOT_LOADED, "it will find that there is none");
    cr_assert_eq(result_of(look), MESSAGE_ABSENT);
}

Test(ops_rmdir, a_create_under_way_is_waited_for)
{
    const struct message *answer = ask(YOU, reserve("out", "a", DT_REG));
    uint32_t tag = post(ME, close_message("out"));
    cr_assert(waits(tag));
    confirm(YOU, "out", "a", make_at(place_of(answer, 0, "out", "a")));
    cr_assert_eq(result_of(tag), MESSAGE_NOT_EMPTY);
    answer = ask(YOU, named(MESSAGE_UNLINK, "out", "a"));
    tag = post(ME, close_message("out"));
    cr_assert_eq(unlink(place_of(answer, 0, "out", "a")), 0);
    tell(YOU, named(MESSAGE_UNLINKED, "out", "a"));
    serving_settle();
    cr_assert_eq(result_of(tag), 0);
}

Test(ops_rmdir, one_at_a_time)
{
    cr_assert_eq(result(ME, close_message("out")), 0);
    uint32_t second = post(YOU, close_message("out"));
    cr_assert(waits(second));
    tell(ME, named(MESSAGE_ABORT, ".", "out"));
    cr_assert_eq(result_of(second), 0);
}

Test(ops_rmdir, a_directory_that_is_not_loaded)
{
    place_directory("r/new");
    cr_assert_eq(result(ME, close_message("new")), MESSAGE_NOT_LOADED);
    load("new");
    cr_assert_eq(result(ME, close_message("new")), 0, "although the root's index does not have it");
    tell(ME, named(MESSAGE_ABORT, ".", "new"));
    cr_assert(is_unknown(".", "new"));
    cr_assert_not(home_of("new")->frozen);
}

/* A program without the shim put a file there. */
Test(ops_rmdir, what_lies_in_a_mirror_is_not_removed)
{
    redirected_once();
    place_file(place_path("r/.shunt/b/n1.1/%s/0/native", home_of("out")->record.mirror) + strlen(place) + 1, "x");
    cr_assert_eq(result(ME, close_message("out")), MESSAGE_NOT_EMPTY);
    cr_assert(place_has("r/out/.shunt-dir"), "or the file would be an orphan");
    cr_assert_eq(operation_count(shuntd.home), 0);
    cr_assert_not(home_of("out")->disk_jobs);
}

Test(ops_rmdir, a_client_ends_around_its_rmdir)
{
    struct record_dir record;
    struct dirid id = id_of("out");
    redirected_once();
    cr_assert_eq(result(ME, close_message("out")), 0);
    uint32_t birth = post(YOU, reserve("out", "b", DT_REG));
    client_ends(ME);
    cr_assert_eq(result_of(birth), 0);
    assert_entry(".", "out", RECORD_LIVE, 0, id.ino);
    tell(YOU, named(MESSAGE_ABORT, "out", "b"));
    cr_assert_eq(result(ME, close_message("out")), 0);
    cr_assert_eq(rmdir(place_path("r/out")), 0);
    client_ends(ME);
    cr_assert(is_unknown(".", "out"));
    cr_assert_eq(record_of(id, &record), -ENOENT);
}

/* While its rmdir is in operation a directory may go at any moment: no job is begun on it. */
Test(ops_rmdir, its_times_are_not_written_meanwhile)
{
    redirected_once();
    cr_assert_eq(home_dir_next_to_write(shuntd.home, UINT64_MAX), home_of("out"));
    cr_assert_eq(result(ME, close_message("out")), 0);
    cr_assert_null(home_dir_next_to_write(shuntd.home, UINT64_MAX));
    tell(ME, named(MESSAGE_ABORT, ".", "out"));
    cr_assert_eq(home_dir_next_to_write(shuntd.home, UINT64_MAX), home_of("out"));
}

/* Attributes. */

static mode_t mode_of(const char *path)
{
    struct stat found;
    cr_assert_eq(stat(path, &found), 0, "%s: %m", path);
    return found.st_mode & 07777;
}

Test(serve_directory, mirrors_follow)
{
    born("out", "a");
    place_directory(place_path("r/.shunt/b/n2.1/%s/4", home_of("out")->record.mirror) + strlen(place) + 1);
    cr_assert_eq(chmod(place_path("r/out"), 02750), 0);
    uint32_t tag = post(ME, about(MESSAGE_ATTRIBUTES, "out"));
    uint32_t second = post(YOU, about(MESSAGE_ATTRIBUTES, "out"));
    cr_assert(waits(tag) && waits(second), "until it is done");
    serving_settle();
    cr_assert(result_of(tag) == 0 && result_of(second) == 0);
    const char *mirror = home_of("out")->record.mirror;
    cr_assert_eq(mode_of(place_path("r/.shunt/b/n1.1/%s", mirror)), 02750);
    cr_assert_eq(mode_of(place_path("r/.shunt/b/n1.1/%s/0", mirror)), 02750);
    cr_assert_eq(mode_of(place_path("r/.shunt/b/n2.1/%s/4", mirror)), 02750);
}

Test(serve_directory, nothing_follows_a_plain_directory)
{
    uint32_t tag = post(ME, about(MESSAGE_ATTRIBUTES, "out"));
    cr_assert_eq(result_of(tag), 0, "without a job");
    tag = post(ME, about(MESSAGE_SYNC, "out"));
    cr_assert_eq(result_of(tag), 0);
}

Test(serve_directory, a_create_does_not_wait_for_who_follows)
{
    born("out", "a");
    uint32_t follow = post(ME, about(MESSAGE_ATTRIBUTES, "out")), birth = post(YOU, reserve("out", "b", DT_REG));
    cr_assert(waits(follow) && !waits(birth));
}

Test(serve_directory, a_place_that_is_out_of_date)
{
    born("out", "a");
    struct dirid id = id_of("out");
    cr_assert_eq(rename(place_path("r/out"), place_path("r/moved")), 0);
    cr_assert_eq(result(ME, (struct message){.type = MESSAGE_ATTRIBUTES, .dir = id}), -ESTALE);
    place_directory("r/out");
    cr_assert_eq(result(ME, (struct message){.type = MESSAGE_ATTRIBUTES, .dir = id}), -ESTALE);
    cr_assert_eq(result(ME, (struct message){.type = MESSAGE_SYNC, .dir = id}), 0, "of the mirrors alone");
    load("moved");
    cr_assert_eq(result(ME, about(MESSAGE_ATTRIBUTES, "moved")), 0);
    cr_assert_eq(result(ME, about(MESSAGE_SYNC, "moved")), 0);
}

/* Times. */

static uint64_t ops_directory_modified(const char *directory)
{
    struct stat found;
    cr_assert_eq(stat(in_root(directory), &found), 0);
    return (uint64_t)found.st_mtim.tv_sec * CLOCK_SECOND + (uint64_t)found.st_mtim.tv_nsec;
}

/* The clock of files goes in ticks. */
/* What a file system was asked for in between it stamps with the fine clock (multigrain times, since Linux 6.13), and the
 * coarse one steps up to a tick later than the time it steps to. */
static void let_a_tick_pass(void)
{
    for (uint64_t now = clock_of(CLOCK_REALTIME); clock_files() <= now;)
        usleep(1000);
}

/* What main does with directories that went quiet. */
static void write_times(void)
{
    struct home_dir *dir;
    while ((dir = home_dir_next_to_write(shuntd.home, UINT64_MAX)) != NULL)
        cr_assert_eq(dir_times_write(&shuntd, dir), 0);
    serving_end();
    serving_settle();
}

Test(serve_directory, the_trunk_is_given_the_time_of_the_last_change)
{
    struct record_dir record;
    born("out", "a");
    let_a_tick_pass();
    born("out", "b"); /* the first made the marker, which the trunk's own time shows */
    uint64_t changed = home_of("out")->record.changed;
    cr_assert_lt(ops_directory_modified("out"), changed);
    write_times();
    cr_assert_eq(ops_directory_modified("out"), changed);
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    cr_assert(record.flags & RECORD_WRITTEN);
    cr_assert(record.changed == changed && record.stood == changed && record.settled >= changed);
    cr_assert_not(home_has_unwritten(shuntd.home));
    let_a_tick_pass();
    born("out", "c");
    cr_assert_gt(home_of("out")->record.changed, changed, "and again");
}

Test(serve_directory, a_later_time_of_the_trunk_stands)
{
    struct record_dir record;
    born("out", "a");
    let_a_tick_pass();
    place_file("r/out/native", "");
    uint64_t own = ops_directory_modified("out");
    cr_assert_gt(own, home_of("out")->record.changed);
    write_times();
    cr_assert_eq(ops_directory_modified("out"), own);
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    cr_assert(record.flags & RECORD_WRITTEN);
    cr_assert(record.settled == own && record.stood == own, "it stands for itself");
}

Test(serve_directory, a_change_while_times_are_written_is_not_lost)
{
    born("out", "a");
    let_a_tick_pass();
    cr_assert_eq(dir_times_write(&shuntd, home_of("out")), 0);
    serving_end();
    post(YOU, reserve("out", "b", DT_REG));
    uint64_t changed = home_of("out")->record.changed;
    serving_settle();
    cr_assert_eq(home_of("out")->record.changed, changed);
    write_times();
    cr_assert_eq(ops_directory_modified("out"), changed);
}

Test(serve_directory, times_that_are_set_stand)
{
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};
    struct record_dir record;
    born("out", "a");
    cr_assert_eq(result(ME, about(MESSAGE_SETTLE, "out")), 0);
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    cr_assert_eq(record.changed, 0);
    cr_assert_eq(utimensat(AT_FDCWD, place_path("r/out"), times, 0), 0);
    write_times();
    cr_assert_eq(ops_directory_modified("out"), 2000 * CLOCK_SECOND, "no older change comes after");
}

Test(serve_directory, settling_waits_for_who_writes_times)
{
    born("out", "a");
    let_a_tick_pass();
    cr_assert_eq(dir_times_write(&shuntd, home_of("out")), 0);
    serving_end();
    uint32_t tag = post(ME, about(MESSAGE_SETTLE, "out"));
    cr_assert(waits(tag));
    serving_settle();
    cr_assert_eq(result_of(tag), 0);
    cr_assert_eq(home_of("out")->record.settled, 0);
}

/* What another daemon tells of `out`. */
static void ops_directory_told(uint16_t member, struct home_times times)
{
    const struct home_dir word = {.times = times};
    const struct message_times told = dir_times_of(&word);
    cr_assert_eq(dir_times_take(&shuntd, member, id_of("out"), &told), 0);
    serving_end();
}

Test(serve_directory, a_change_on_another_node_is_seen_in_the_index)
{
    struct record_dir record;
    ops_directory_told(7, (struct home_times){.changed = 50, .settled = 20, .stood = 10}); /* `stood` is not told */
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    cr_assert(record.changed == 50 && record.settled == 20 && record.stood == 20);
    cr_assert_eq(home_dir_next_to_announce(shuntd.home, UINT64_MAX), home_of("out"), "others are to hear of it");
    ops_directory_told(7, (struct home_times){.changed = 50});
    cr_assert_null(home_dir_next_to_announce(shuntd.home, UINT64_MAX), "no news");
    ops_directory_told(7, (struct home_times){.changed = 50, .written = true});
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    cr_assert(record.flags & RECORD_WRITTEN);
}

Test(serve_directory, word_of_a_change_before_times_were_set_comes_too_late)
{
    struct record_dir record;
    const struct home_times change = {.changed = 50};
    ops_directory_told(7, change);
    cr_assert_eq(result(ME, about(MESSAGE_SETTLE, "out")), 0);
    uint64_t round = home_of("out")->times.round;
    ops_directory_told(8, (struct home_times){.changed = 60});
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    cr_assert_eq(record.changed, 0);
    ops_directory_told(7, (struct home_times){.round = round, .changed = 55});
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    cr_assert_eq(record.changed, 55, "it knew that they were set");
    cr_assert_eq(result(ME, about(MESSAGE_SETTLE, "out")), 0);
    cr_assert_gt(home_of("out")->times.round, round);
}

Test(serve_directory, times_outlive_what_is_known_of_a_directory)
{
    born("out", "a");
    let_a_tick_pass();
    born("out", "b");
    uint64_t changed = home_of("out")->record.changed;
    cr_assert_eq(reply_forget_dir(&shuntd, home_of("out")), 0);
    serving_end();
    write_times();
    cr_assert_eq(ops_directory_modified("out"), changed);
}

Test(serve_directory, at_the_end_all_times_are_written)
{
    born("out", "a");
    born("in", "a");
    let_a_tick_pass();
    born("out", "b");
    born("in", "b");
    uint64_t out = home_of("out")->record.changed, in = home_of("in")->record.changed;
    dir_times_write_all(&shuntd);
    cr_assert(ops_directory_modified("out") == out && ops_directory_modified("in") == in);
    cr_assert_not(home_has_unwritten(shuntd.home));
}

/* Somebody waits for the events of a directory: they come of the trunk alone. */

Test(serve_directory, creates_that_are_watched_stay_in_the_trunk)
{
    struct record_dir record;
    uint64_t ino = born("out", "before");
    cr_assert_eq(result(ME, about(MESSAGE_WATCH, "out")), 0);
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    cr_assert_eq(record.why, RECORD_WHY_WATCHED);
    const struct message *answer = ask(YOU, reserve("out", "a", DT_REG));
    cr_assert(answer->result == 0 && answer->answer.entry[0].branch == 0);
    answer = ask(ME, two_names(MESSAGE_RENAME, "out", "before", "out", "after"));
    cr_assert(answer->result == 0 && answer->answer.entry[0].ino == ino && answer->answer.entry[1].branch == 0,
              "a name that comes by a rename is an event, too");
    cr_assert_eq(result(ME, about(MESSAGE_WATCH, "out")), 0, "again");
    const struct message *status = ask(ME, (struct message){.type = MESSAGE_STATUS});
    cr_assert(memmem(status->text_answer.text.text, status->text_answer.text.length, "pinned watched out\n", 19));
}

Test(serve_directory, times_are_written_before_it_is_watched)
{
    born("out", "a");
    let_a_tick_pass();
    born("out", "b");
    uint64_t changed = home_of("out")->record.changed;
    uint32_t first = post(ME, about(MESSAGE_WATCH, "out")), second = post(YOU, about(MESSAGE_WATCH, "out"));
    cr_assert(waits(first) && waits(second), "or they would be an event of their own");
    serving_settle();
    cr_assert(result_of(first) == 0 && result_of(second) == 0);
    cr_assert(home_of("out")->record.flags & RECORD_WRITTEN);
    cr_assert_eq(ops_directory_modified("out"), changed, "%lu, not %lu", ops_directory_modified("out"), changed);
    uint32_t plain = post(ME, about(MESSAGE_WATCH, "in"));
    cr_assert_eq(result_of(plain), 0, "nothing to be written");
}

static int directory_note_end(struct shuntd *unused, void *context, const struct collective_end *end)
{
    *(int *)context = end->result;
    return 0;
}

/* A directory may have another coordinator then, and never be asked for here again. */
Test(serve_directory, nothing_is_kept_of_directories_when_all_begins_again)
{
    cr_assert_eq(home_dir_count(shuntd.home), 3);
    recovery_forget(&shuntd);
    cr_assert_eq(home_dir_count(shuntd.home), 0);
}

/* Others may have used it by then, and all have forgotten that. */
Test(serve_directory, a_directory_that_was_made_before_all_begins_again_is_not_known_to_be_empty)
{
    cr_assert_eq(result(ME, reserve(".", "new", DT_DIR)), 0);
    const struct operation *operation = operation_find(shuntd.home, id_of("."), "new", 3);
    cr_assert_not(home_has_forgotten_since(shuntd.home, operation));
    recovery_forget(&shuntd);
    cr_assert(home_has_forgotten_since(shuntd.home, operation));
}

Test(serve_directory, word_of_a_new_directory_from_before_all_begins_again_is_not_believed)
{
    struct message created = {.type = MESSAGE_DIR_CREATED, .load.path = message_text("new", 3)};
    uint8_t bytes[MESSAGE_SHORT + MESSAGE_TEXT_MAX];
    struct frame_item item = {.kind = RPC_COORDINATOR, .bytes = bytes};
    cr_assert_eq(mkdir(in_root("new"), 0755), 0);
    created.dir = id_of("new");
    item.size = (uint32_t)message_encode(bytes, sizeof bytes, &created);
    shuntd.route.unreported_count = 1; /* a member that may have said so before */
    cr_assert_eq(coordinator_take_item(&shuntd, 7, &item), 0);
    cr_assert(home_of("new") == NULL);
    cr_assert(list_empty(&shuntd.deferred_items));
    shuntd.route.unreported_count = 0;
    cr_assert_eq(coordinator_take_item(&shuntd, 7, &item), 0);
    cr_assert(home_of("new")->coordinator->created_empty);
}

/* A daemon that asks may have joined in place of the home that is gone, and see nothing amiss. */
Test(serve_directory, names_are_not_told_while_a_home_is_gone)
{
    int ended = -1;
    struct message list = about(MESSAGE_LIST, "out");
    list.list.to = PAGE_ALL;
    shuntd.route.home[0] = 2;
    cr_assert_eq(collective_begin(&shuntd, &list, NULL, directory_note_end, &ended), 0);
    cr_assert_eq(ended, -1);
    recovery_forget(&shuntd);
    cr_assert_eq(collective_resume(&shuntd), 0);
    cr_assert_eq(ended, MESSAGE_NOT_LOADED);
}
