/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Two names, held at once. */

#include "ops/ops.h"

#include <dirent.h>
#include <linux/magic.h>
#include <sys/syscall.h>

#include "request/request.h"
#include "ops_fixture.h"

static void rename_init(void)
{
    serving_init();
    load(".");
    load("out");
    load("in");
}

TestSuite(ops_rename, .init = rename_init, .fini = serving_finish, .timeout = 60);

static struct message rename_message(const char *from, const char *old, const char *to, const char *new, uint16_t flags)
{
    struct message message = two_names(MESSAGE_RENAME, from, old, to, new);
    message.flags = flags;
    return message;
}

static void ops_rename_renamed(const char *from, const char *old, const char *to, const char *new, int result)
{
    struct message message = two_names(MESSAGE_RENAMED, from, old, to, new);
    message.result = result;
    tell(ME, message);
}

/* The client's rename, from place to place as the answer says. */
static void ops_rename_move(const struct message *answer, const char *from, const char *old, const char *to, const char *new,
                            unsigned flags)
{
    char source[PATH_MAX];
    strcpy(source, place_of(answer, 0, from, old));
    cr_assert_eq(sys_renameat2(AT_FDCWD, source, AT_FDCWD, place_of(answer, 1, to, new), flags), 0);
}

Test(ops_rename, onto_no_name_it_stays_in_its_leaf)
{
    uint64_t ino = born("out", "a");
    const struct message *answer = ask(ME, rename_message("out", "a", "out", "b", 0));
    cr_assert_eq(answer->result, 0);
    cr_assert(record_same(&answer->answer.entry[0], &(struct record_entry){.branch = 1, .leaf = 0, .ino = ino}));
    cr_assert(answer->answer.entry[1].branch == 1 && answer->answer.entry[1].leaf == 0);
    assert_entry("out", "a", RECORD_DYING, 1000, ino);
    assert_entry("out", "b", RECORD_PENDING, 1000, 0);
    ops_rename_move(answer, "out", "a", "out", "b", 0);
    ops_rename_renamed("out", "a", "out", "b", 0);
    cr_assert(is_unknown("out", "a"));
    assert_entry("out", "b", RECORD_LIVE, 1000, ino);
    cr_assert_eq(leaf_holds("out", 0), 1);
    cr_assert(operation_count(shuntd.home) == 0 && shuntd.counts.renames == 1);
}

Test(ops_rename, into_another_directory_it_goes_where_creates_go)
{
    uint64_t ino = born("out", "a");
    uint32_t tag = post(ME, rename_message("out", "a", "in", "b", 0));
    cr_assert(waits(tag), "for a leaf");
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    serving_settle();
    const struct message *answer = answer_to(tag);
    cr_assert_eq(result_of(tag), 0);
    ops_rename_move(answer, "out", "a", "in", "b", 0);
    ops_rename_renamed("out", "a", "in", "b", 0);
    cr_assert(is_unknown("out", "a"));
    assert_entry("in", "b", RECORD_LIVE, 1000, ino);
    cr_assert(leaf_holds("out", 0) == 0 && leaf_holds("in", 0) == 1);
    cr_assert_eq(ino_at(place_path("r/.shunt/b/n1.1/%s/0/b", home_of("in")->record.mirror)), ino);
    cr_assert(home_of("out")->record.changed > 0 && home_of("in")->record.changed > 0);
}

Test(ops_rename, a_file_of_the_trunk_stays_in_the_trunk)
{
    uint64_t ino = born_in_trunk("out", "a");
    const struct message *answer = ask(ME, rename_message("out", "a", "in", "b", 0));
    cr_assert(answer->result == 0 && answer->answer.entry[1].branch == 0 && answer->answer.place[1].length == 0);
    ops_rename_move(answer, "out", "a", "in", "b", 0);
    ops_rename_renamed("out", "a", "in", "b", 0);
    assert_entry("in", "b", RECORD_LIVE, 0, ino);
    cr_assert_not(place_has("r/in/.shunt-dir"));
}

Test(ops_rename, to_the_trunk_if_that_was_asked)
{
    uint64_t ino = born("out", "a");
    cr_assert_eq(result(ME, about(MESSAGE_SETTLE, "out")), 0);
    const struct message *answer = ask(ME, rename_message("out", "a", "in", "b", MESSAGE_TRUNK));
    cr_assert(answer->result == 0 && answer->answer.entry[1].branch == 0);
    cr_assert(home_of("out")->record.changed > 0 && home_of("in")->record.changed == 0,
              "it leaves a branch; that it comes into the trunk the trunk shows itself");
    ops_rename_move(answer, "out", "a", "in", "b", 0);
    ops_rename_renamed("out", "a", "in", "b", 0);
    assert_entry("in", "b", RECORD_LIVE, 0, ino);
    cr_assert_eq(leaf_holds("out", 0), 0);
}

Test(ops_rename, onto_a_file_it_goes_to_its_place)
{
    uint64_t moved = born_in_trunk("out", "a"), victim = born("in", "b");
    const struct message *answer = ask(ME, rename_message("out", "a", "in", "b", 0));
    cr_assert_eq(answer->result, MESSAGE_EXISTS);
    cr_assert(answer->answer.entry[0].ino == moved && answer->answer.place[0].length == 0);
    cr_assert(answer->answer.entry[1].ino == victim && answer->answer.entry[1].branch == 1);
    assert_entry("out", "a", RECORD_DYING, 0, moved);
    assert_entry("in", "b", RECORD_PENDING, 1000, victim);
    ops_rename_move(answer, "out", "a", "in", "b", 0);
    ops_rename_renamed("out", "a", "in", "b", 0);
    cr_assert(is_unknown("out", "a"));
    assert_entry("in", "b", RECORD_LIVE, 1000, moved);
    cr_assert_eq(leaf_holds("in", 0), 1);
}

Test(ops_rename, any_process_that_s_branch_the_victim_is_in)
{
    uint64_t moved = born("out", "a");
    foreign("out", "b", 6);
    const struct message *answer = ask(ME, rename_message("out", "a", "out", "b", 0));
    cr_assert_eq(answer->result, MESSAGE_EXISTS);
    cr_assert(answer->answer.entry[1].branch == 2 && answer->answer.entry[1].leaf == 6);
    ops_rename_move(answer, "out", "a", "out", "b", 0);
    ops_rename_renamed("out", "a", "out", "b", 0);
    assert_entry("out", "b", RECORD_LIVE, 2006, moved);
    cr_assert_eq(leaf_holds("out", 0), 0, "the place it left");
    cr_assert_eq(home_of("out")->leaves.count, 1, "leaf 6 is another node's");
}

Test(ops_rename, a_failure_leaves_all_as_before)
{
    uint64_t first = born("out", "a"), second = born("out", "b");
    ask(ME, rename_message("out", "a", "out", "b", 0));
    ops_rename_renamed("out", "a", "out", "b", -EACCES);
    assert_entry("out", "a", RECORD_LIVE, 1000, first);
    assert_entry("out", "b", RECORD_LIVE, 1000, second);
    ask(ME, rename_message("out", "a", "out", "c", 0));
    ops_rename_renamed("out", "a", "out", "c", -ENOSPC);
    assert_entry("out", "a", RECORD_LIVE, 1000, first);
    cr_assert(is_unknown("out", "c"));
    cr_assert(leaf_holds("out", 0) == 2 && operation_count(shuntd.home) == 0);
}

Test(ops_rename, only_who_asked_may_say_how_it_went)
{
    uint64_t ino = born("out", "a");
    ask(ME, rename_message("out", "a", "out", "b", 0));
    tell(YOU, two_names(MESSAGE_RENAMED, "out", "a", "out", "b"));
    tell(ME, two_names(MESSAGE_RENAMED, "out", "b", "out", "a")); /* the wrong way round */
    tell(ME, named(MESSAGE_UNLINKED, "out", "a"));
    tell(ME, named(MESSAGE_ABORT, "out", "a"));
    confirm(ME, "out", "b", ino);
    assert_entry("out", "a", RECORD_DYING, 1000, ino);
    assert_entry("out", "b", RECORD_PENDING, 1000, 0);
}

Test(ops_rename, refused)
{
    uint64_t first = born("out", "a"), second = born("out", "b");
    cr_assert_eq(result(ME, rename_message("out", "a", "out", "b", MESSAGE_NOREPLACE)), -EEXIST);
    cr_assert_eq(result(ME, rename_message("out", "none", "out", "b", 0)), MESSAGE_ABSENT);
    cr_assert_eq(result(ME, rename_message("out", "none", "out", "b", MESSAGE_NOREPLACE)), MESSAGE_ABSENT);
    cr_assert_eq(result(ME, rename_message("out", "a", "out", "none", MESSAGE_EXCHANGE)), MESSAGE_ABSENT);
    cr_assert_eq(result(ME, rename_message("out", "none", "out", "b", MESSAGE_EXCHANGE)), MESSAGE_ABSENT);
    cr_assert_eq(result(ME, rename_message("out", "a", "out", "a", 0)), MESSAGE_SAME);
    assert_entry("out", "a", RECORD_LIVE, 1000, first);
    assert_entry("out", "b", RECORD_LIVE, 1000, second);
    cr_assert(operation_count(shuntd.home) == 0 && shuntd.counts.renames == 0);
    cr_assert_eq(result(ME, rename_message("out", "a", "out", "c", MESSAGE_NOREPLACE)), 0, "where there is nothing to replace");
}

static uint64_t ops_rename_linked(const char *old, const char *new)
{
    uint64_t ino = born("out", old);
    const struct message *answer = ask(ME, reserve("out", new, DT_REG));
    char path[PATH_MAX];
    strcpy(path, place_of(answer, 0, "out", old));
    cr_assert_eq(link(path, place_of(answer, 0, "out", new)), 0);
    confirm(ME, "out", new, ino);
    return ino;
}

Test(ops_rename, two_names_of_one_file)
{
    char old[PATH_MAX];
    uint64_t ino = ops_rename_linked("a", "b");
    const uint64_t changed = home_of("out")->record.changed;
    const struct message *answer = ask(ME, rename_message("out", "a", "out", "b", 0));
    cr_assert_eq(answer->result, MESSAGE_SAME);
    strcpy(old, place_of(answer, 0, "out", "a"));
    cr_assert(ino_at(old) == ino && ino_at(place_of(answer, 1, "out", "b")) == ino, "where the client looks whether they are");
    cr_assert(home_of("out")->record.changed == changed && operation_count(shuntd.home) == 0 && shuntd.counts.renames == 0);
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    assert_entry("out", "b", RECORD_LIVE, 1000, ino);
}

/* They were not when the client looked. */
Test(ops_rename, two_names_that_are_of_one_file_by_now)
{
    uint64_t ino = ops_rename_linked("a", "b");
    const uint64_t changed = home_of("out")->record.changed;
    const struct message *answer = ask(ME, rename_message("out", "a", "out", "b", MESSAGE_TWO_FILES));
    cr_assert_eq(answer->result, MESSAGE_EXISTS);
    ops_rename_move(answer, "out", "a", "out", "b", 0);
    ops_rename_renamed("out", "a", "out", "b", -ECANCELED);
    cr_assert_eq(home_of("out")->record.changed, changed);
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    assert_entry("out", "b", RECORD_LIVE, 1000, ino);
    answer = ask(ME, rename_message("out", "a", "out", "b", MESSAGE_TWO_FILES));
    ops_rename_move(answer, "out", "a", "out", "b", 0);
    client_ends(ME);
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    assert_entry("out", "b", RECORD_LIVE, 1000, ino);
}

/* A program without the shim has put another file in the place of the one. */
Test(ops_rename, two_names_that_were_of_one_file)
{
    uint64_t ino = ops_rename_linked("a", "b");
    const struct message *answer = ask(ME, rename_message("out", "a", "out", "b", MESSAGE_TWO_FILES));
    cr_assert_eq(unlink(place_of(answer, 1, "out", "b")), 0);
    ops_rename_move(answer, "out", "a", "out", "b", 0);
    ops_rename_renamed("out", "a", "out", "b", 0);
    cr_assert(is_unknown("out", "a"));
    assert_entry("out", "b", RECORD_LIVE, 1000, ino);
    cr_assert_eq(leaf_holds("out", 0), 1);
}

/* Others meanwhile. */

Test(ops_rename, both_names_are_held)
{
    born("out", "a");
    const struct message *answer = ask(ME, rename_message("out", "a", "out", "b", 0));
    uint32_t old = post(YOU, reserve("out", "a", DT_REG)), new = post(YOU, reserve("out", "b", DT_REG));
    uint32_t removal = post(YOU, named(MESSAGE_UNLINK, "out", "b"));
    cr_assert(waits(old) && waits(new) && waits(removal));
    ops_rename_move(answer, "out", "a", "out", "b", 0);
    ops_rename_renamed("out", "a", "out", "b", 0);
    cr_assert_eq(result_of(old), 0, "the old name is free");
    cr_assert_eq(result_of(new), MESSAGE_EXISTS);
    cr_assert_eq(result_of(removal), 0);
}

Test(ops_rename, it_waits_for_either_name)
{
    uint64_t ino = born("out", "a");
    ask(YOU, reserve("out", "b", DT_REG));
    uint32_t tag = post(ME, rename_message("out", "a", "out", "b", 0));
    cr_assert(waits(tag));
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    ask(YOU, named(MESSAGE_UNLINK, "out", "a"));
    tell(YOU, named(MESSAGE_ABORT, "out", "b"));
    cr_assert(waits(tag), "now for the other");
    tell(YOU, named(MESSAGE_ABORT, "out", "a"));
    cr_assert_eq(result_of(tag), 0);
}

Test(ops_rename, two_that_cross)
{
    uint64_t first = born("out", "a"), second = born("in", "b");
    const struct message *answer = ask(ME, rename_message("out", "a", "in", "b", 0));
    uint32_t back = post(YOU, rename_message("in", "b", "out", "a", 0));
    cr_assert(waits(back));
    ops_rename_move(answer, "out", "a", "in", "b", 0);
    ops_rename_renamed("out", "a", "in", "b", 0);
    serving_settle();
    cr_assert_eq(result_of(back), 0);
    cr_assert_eq(answer_to(back)->answer.entry[0].ino, first);
    cr_assert_neq(first, second);
}

/* Exchange. */

Test(ops_rename, an_exchange_leaves_the_places)
{
    uint64_t first = born_in_trunk("out", "a"), second = born("in", "b");
    const struct message *answer = ask(ME, rename_message("out", "a", "in", "b", MESSAGE_EXCHANGE));
    cr_assert_eq(answer->result, MESSAGE_EXISTS);
    assert_entry("out", "a", RECORD_PENDING, 0, first);
    assert_entry("in", "b", RECORD_PENDING, 1000, second);
    ops_rename_move(answer, "out", "a", "in", "b", 2 /* RENAME_EXCHANGE */);
    ops_rename_renamed("out", "a", "in", "b", 0);
    assert_entry("out", "a", RECORD_LIVE, 0, second);
    assert_entry("in", "b", RECORD_LIVE, 1000, first);
    cr_assert_eq(ino_at(place_path("r/out/a")), second);
    cr_assert(leaf_holds("in", 0) == 1 && operation_count(shuntd.home) == 0);
}

Test(ops_rename, an_exchange_swaps_types)
{
    struct record_entry entry;
    born("out", "a");
    born_directory("in", "sub");
    struct dirid sub = id_of("in/sub");
    const struct message *answer = ask(ME, rename_message("out", "a", "in", "sub", MESSAGE_EXCHANGE));
    cr_assert_eq(answer->result, MESSAGE_EXISTS);
    ops_rename_renamed("out", "a", "in", "sub", 0);
    cr_assert(entry_of("in", "sub", &entry) == 0 && entry.type == DT_REG);
    cr_assert(entry_of("out", "a", &entry) == 0 && entry.type == DT_DIR && entry.ino == sub.ino);
    cr_assert_str_eq(home_dir_find(shuntd.home, sub)->path, "out/a");
}

Test(ops_rename, an_exchange_that_failed)
{
    uint64_t first = born("out", "a"), second = born("out", "b");
    ask(ME, rename_message("out", "a", "out", "b", MESSAGE_EXCHANGE));
    ops_rename_renamed("out", "a", "out", "b", -EINVAL);
    assert_entry("out", "a", RECORD_LIVE, 1000, first);
    assert_entry("out", "b", RECORD_LIVE, 1000, second);
}

/* Directories. */

Test(ops_rename, what_is_below_a_directory_goes_along)
{
    born_directory("out", "sub");
    born_directory("out/sub", "deep");
    born_directory("out", "subway");
    uint64_t ino = born("out/sub/deep", "f");
    const struct message *answer = ask(ME, rename_message("out", "sub", ".", "top", 0));
    cr_assert(answer->result == 0 && answer->answer.entry[1].branch == 0);
    cr_assert_eq(rename(place_path("r/out/sub"), place_path("r/top")), 0);
    ops_rename_renamed("out", "sub", ".", "top", 0);
    cr_assert(is_unknown("out", "sub"));
    assert_entry(".", "top", RECORD_LIVE, 0, id_of("top").ino);
    cr_assert_str_eq(home_of("top")->path, "top");
    cr_assert_str_eq(home_of("top/deep")->path, "top/deep");
    cr_assert_str_eq(home_of("out/subway")->path, "out/subway");
    assert_entry("top/deep", "f", RECORD_LIVE, 1000, ino);
    cr_assert_eq(result(ME, reserve("top/deep", "g", DT_REG)), 0);
}

Test(ops_rename, with_a_tag_it_is_answered_once_all_know_the_new_places)
{
    born_directory("out", "sub");
    born_directory("out/sub", "deep");
    const struct dirid deep = id_of("out/sub/deep");
    load("out/sub/deep");
    const struct message *given = ask(ME, rename_message("out", "sub", "in", "moved", 0));
    ops_rename_move(given, "out", "sub", "in", "moved", 0);
    const struct message renamed = two_names(MESSAGE_RENAMED, "out", "sub", "in", "moved");
    cr_assert_eq(result(ME, renamed), 0);
    cr_assert_str_eq(home_dir_find(shuntd.home, deep)->path, "in/moved/deep");
    cr_assert_eq(operation_count(shuntd.home), 0);
    cr_assert_eq(result(ME, renamed), 0, "it is over");
    born("out", "a");
    ask(ME, rename_message("out", "a", "out", "b", 0));
    struct message failed = two_names(MESSAGE_RENAMED, "out", "a", "out", "b");
    failed.result = -EACCES;
    cr_assert_eq(result(ME, failed), 0, "of a file, too, and however it went");
    cr_assert_eq(operation_count(shuntd.home), 0);
}

Test(ops_rename, a_directory_that_was_replaced_is_forgotten)
{
    struct record_dir record;
    born_directory("out", "a");
    born_directory("in", "b");
    struct dirid victim = id_of("in/b"), moved = id_of("out/a");
    cr_assert_eq(ask(ME, rename_message("out", "a", "in", "b", 0))->result, MESSAGE_EXISTS);
    struct message message = two_names(MESSAGE_RENAMED, "out", "a", "in", "b");
    cr_assert_eq(rename(place_path("r/out/a"), place_path("r/in/b")), 0);
    message.rename.replaced = victim;
    tell(ME, message);
    cr_assert_null(home_dir_find(shuntd.home, victim));
    cr_assert_eq(record_of(victim, &record), -ENOENT);
    assert_entry("in", "b", RECORD_LIVE, 0, moved.ino);
    cr_assert_str_eq(home_dir_find(shuntd.home, moved)->path, "in/b");
}

Test(ops_rename, directories_that_change_places)
{
    born_directory("out", "a");
    born_directory("out/a", "below_a");
    born_directory("in", "b");
    born_directory("in/b", "below_b");
    struct dirid a = id_of("out/a"), below_a = id_of("out/a/below_a"), b = id_of("in/b"), below_b = id_of("in/b/below_b");
    ask(ME, rename_message("out", "a", "in", "b", MESSAGE_EXCHANGE));
    ops_rename_renamed("out", "a", "in", "b", 0);
    cr_assert_str_eq(home_dir_find(shuntd.home, a)->path, "in/b");
    cr_assert_str_eq(home_dir_find(shuntd.home, below_a)->path, "in/b/below_a");
    cr_assert_str_eq(home_dir_find(shuntd.home, b)->path, "out/a");
    cr_assert_str_eq(home_dir_find(shuntd.home, below_b)->path, "out/a/below_b");
}

/* A client that ends in between. */

Test(ops_rename, a_client_ends_before_its_rename)
{
    uint64_t first = born("out", "a"), second = born("out", "b");
    ask(ME, rename_message("out", "a", "out", "b", 0));
    client_ends(ME);
    assert_entry("out", "a", RECORD_LIVE, 1000, first);
    assert_entry("out", "b", RECORD_LIVE, 1000, second);
    ask(ME, rename_message("out", "a", "out", "c", 0));
    client_ends(ME);
    assert_entry("out", "a", RECORD_LIVE, 1000, first);
    cr_assert(is_unknown("out", "c"));
}

Test(ops_rename, a_client_ends_after_its_rename)
{
    uint64_t first = born("out", "a");
    born("out", "b");
    const struct message *answer = ask(ME, rename_message("out", "a", "out", "b", 0));
    ops_rename_move(answer, "out", "a", "out", "b", 0);
    client_ends(ME);
    cr_assert(is_unknown("out", "a"));
    assert_entry("out", "b", RECORD_LIVE, 1000, first);
    cr_assert_eq(leaf_holds("out", 0), 1);
    answer = ask(ME, rename_message("out", "b", "in", "c", 0));
    ops_rename_move(answer, "out", "b", "in", "c", 0);
    client_ends(ME);
    cr_assert(is_unknown("out", "b"));
    assert_entry("in", "c", RECORD_LIVE, 1000, first);
}

Test(ops_rename, a_client_ends_around_an_exchange)
{
    uint64_t first = born("out", "a"), second = born_in_trunk("in", "b");
    ask(ME, rename_message("out", "a", "in", "b", MESSAGE_EXCHANGE));
    client_ends(ME);
    assert_entry("out", "a", RECORD_LIVE, 1000, first);
    assert_entry("in", "b", RECORD_LIVE, 0, second);
    const struct message *answer = ask(ME, rename_message("out", "a", "in", "b", MESSAGE_EXCHANGE));
    ops_rename_move(answer, "out", "a", "in", "b", 2 /* RENAME_EXCHANGE */);
    client_ends(ME);
    assert_entry("out", "a", RECORD_LIVE, 1000, second);
    assert_entry("in", "b", RECORD_LIVE, 0, first);
}

Test(ops_rename, a_client_ends_after_it_moved_a_directory)
{
    born_directory("out", "sub");
    born_directory("out/sub", "deep");
    ask(ME, rename_message("out", "sub", "in", "sub", 0));
    cr_assert_eq(rename(place_path("r/out/sub"), place_path("r/in/sub")), 0);
    client_ends(ME);
    cr_assert(is_unknown("out", "sub"));
    cr_assert_str_eq(home_of("in/sub/deep")->path, "in/sub/deep");
}

static struct request_channel *ops_rename_attach(void)
{
    struct request_channel *channel;
    cr_assert_eq(chmod(place_path("run"), 0700), 0);
    cr_assert_eq(request_attach(&channel, place_path("run")), 0);
    return channel;
}

Test(ops_rename, while_a_directory_moves_nobody_goes_by_where_it_was)
{
    struct request_channel *channel = ops_rename_attach();
    shuntd.session.system = NFS_SUPER_MAGIC;
    born_directory("out", "sub");
    born("out", "a");
    const uint64_t before = request_places(channel);
    cr_assert(request_are_places_kept(before));
    ask(ME, rename_message("out", "a", "out", "b", 0));
    ops_rename_renamed("out", "a", "out", "b", -EIO);
    cr_assert_eq(request_places(channel), before, "files are nothing that leads anywhere");
    ask(ME, rename_message("out", "sub", ".", "top", 0));
    cr_assert_not(request_are_places_kept(request_places(channel)));
    ask(YOU, rename_message("out", "a", "out", "b", 0));
    cr_assert_not(request_are_places_kept(request_places(channel)));
    ops_rename_renamed("out", "sub", ".", "top", -EIO);
    const uint64_t after = request_places(channel);
    cr_assert(request_are_places_kept(after) && after != before);
    client_ends(YOU);
    cr_assert_eq(request_places(channel), after);
    ask(ME, rename_message("out", "a", "out", "sub", MESSAGE_EXCHANGE));
    cr_assert_not(request_are_places_kept(request_places(channel)));
    client_ends(ME);
    cr_assert(request_are_places_kept(request_places(channel)) && request_places(channel) != after);
}

Test(ops_rename, a_directory_that_moves_where_no_kernel_goes_by_names)
{
    struct request_channel *channel = ops_rename_attach();
    const uint64_t before = request_places(channel);
    born_directory("out", "sub");
    ask(ME, rename_message("out", "sub", ".", "top", 0));
    cr_assert_eq(request_places(channel), before);
    cr_assert_eq(rename(place_path("r/out/sub"), place_path("r/top")), 0);
    ops_rename_renamed("out", "sub", ".", "top", 0);
    cr_assert_eq(request_places(channel), before);
    cr_assert(is_unknown("out", "sub") && !is_unknown(".", "top"));
}
