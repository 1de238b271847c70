/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What is there, what may come, what goes: one name at a time. */

#include "ops/ops.h"

#include <dirent.h>

#include "ops/completion.h"
#include "ops_fixture.h"
#include "union/marker.h"

static void serve_init(void)
{
    serving_init();
    load("out");
    load("in");
}

TestSuite(serve, .init = serve_init, .fini = serving_finish, .timeout = 60);
TestSuite(load, .init = serving_init, .fini = serving_finish, .timeout = 60);

/* Loading. */

static void mark_by_hand(const char *directory, const char *mirror)
{
    struct marker marker = {.id = 0x5f3a9c01d2e4, .directory = id_of(directory)};
    strcpy(marker.mirror, mirror);
    strcpy(marker.path, directory);
    int fd = place_open(place_path("r/%s", directory) + strlen(place) + 1);
    cr_assert_eq(marker_write(fd, &marker), 0);
    close(fd);
}

Test(load, a_directory_is_trunk_and_mirrors)
{
    struct record_dir record;
    mark_by_hand("out", "out-5f3a9c01d2e4");
    place_file("r/out/plain", "");
    place_directory("r/out/sub");
    cr_assert_eq(symlink("plain", place_path("r/out/link")), 0);
    place_directory("r/.shunt/b/n1.1/out-5f3a9c01d2e4/0");
    place_directory("r/.shunt/b/n1.1/out-5f3a9c01d2e4/3");
    place_directory("r/.shunt/b/n2.1/out-5f3a9c01d2e4/7");
    place_file("r/.shunt/b/n1.1/out-5f3a9c01d2e4/3/mine", "");
    place_file("r/.shunt/b/n2.1/out-5f3a9c01d2e4/7/yours", "");
    load("out");
    assert_entry("out", "plain", RECORD_LIVE, 0, ino_at(place_path("r/out/plain")));
    assert_entry("out", "sub", RECORD_LIVE, 0, id_of("out/sub").ino);
    assert_entry("out", "link", RECORD_LIVE, 0, ino_at(place_path("r/out/link")));
    assert_entry("out", "mine", RECORD_LIVE, 1003, ino_at(place_path("r/.shunt/b/n1.1/out-5f3a9c01d2e4/3/mine")));
    assert_entry("out", "yours", RECORD_LIVE, 2007, ino_at(place_path("r/.shunt/b/n2.1/out-5f3a9c01d2e4/7/yours")));
    cr_assert(is_unknown("out", ".shunt-dir"));
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    cr_assert_eq(record.flags, RECORD_LOADED | RECORD_MARKED);
    cr_assert_eq(record.marker, 0x5f3a9c01d2e4);
    cr_assert_str_eq(record.mirror, "out-5f3a9c01d2e4");
    cr_assert(leaf_holds("out", 0) == 0 && leaf_holds("out", 3) == 1, "this node's own leaves are counted");
    cr_assert_eq(shuntd.counts.loads, 1);
}

Test(load, the_root_itself)
{
    load(".");
    assert_entry(".", "out", RECORD_LIVE, 0, id_of("out").ino);
    cr_assert(is_unknown(".", ".shunt"));
}

Test(load, only_what_is_inside)
{
    static const char *const outside[] = {
        "/etc", "..", "out/..", "out/../in", "../r/out", ".shunt", ".shunt/b", "out/../../run",
    };
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        cr_assert_eq(result(ME, load_message(id_of("out"), outside[i])), -EXDEV, "%s", outside[i]);
    place_directory("r/..dots..");
    place_directory("r/.shunted");
    load("..dots..");
    load(".shunted");
    cr_assert_eq(home_dir_count(shuntd.home), 2);
}

Test(load, another_directory_is_there)
{
    cr_assert_eq(result(ME, load_message(id_of("out"), "in")), -ESTALE);
    cr_assert_eq(result(ME, load_message(id_of("out"), "gone")), -ENOENT);
    place_file("r/file", "");
    cr_assert_eq(result(ME, load_message(id_of("out"), "file")), -ENOTDIR);
    cr_assert_eq(symlink("out", place_path("r/link")), 0);
    cr_assert_lt(result(ME, load_message(id_of("out"), "link")), 0, "a place is never a link");
    cr_assert_eq(home_dir_count(shuntd.home), 0);
    load("out");
}

Test(load, who_comes_meanwhile_waits)
{
    place_file("r/out/a", "");
    uint32_t first = post(ME, load_message(id_of("out"), "out"));
    uint32_t second = post(YOU, load_message(id_of("out"), "out"));
    uint32_t third = post(YOU, named(MESSAGE_LOOKUP, "out", "a"));
    cr_assert(waits(first) && waits(second) && waits(third));
    serving_settle();
    cr_assert(result_of(first) == 0 && result_of(second) == 0);
    cr_assert_eq(result_of(third), MESSAGE_EXISTS);
    cr_assert_eq(shuntd.counts.loads, 1, "listed once");
}

Test(load, who_waits_for_a_load_that_fails)
{
    uint32_t first = post(ME, load_message(id_of("out"), "in"));
    uint32_t second = post(YOU, named(MESSAGE_LOOKUP, "out", "a"));
    cr_assert(waits(second));
    serving_settle();
    cr_assert_eq(result_of(first), -ESTALE);
    cr_assert_eq(result_of(second), MESSAGE_NOT_LOADED);
}

Test(load, nothing_is_known_of_a_directory_that_is_not_loaded)
{
    static const uint16_t about_one[] = {MESSAGE_LOOKUP,  MESSAGE_CREATE, MESSAGE_ADOPT,      MESSAGE_VANISHED, MESSAGE_UNLINK,
                                         MESSAGE_PROMOTE, MESSAGE_RMDIR,  MESSAGE_ATTRIBUTES, MESSAGE_SETTLE,   MESSAGE_SYNC};
    for (size_t i = 0; i < sizeof about_one / sizeof *about_one; i++)
        cr_assert_eq(result(ME, named(about_one[i], "out", "a")), MESSAGE_NOT_LOADED, "type %d", about_one[i]);
    cr_assert_eq(result(ME, two_names(MESSAGE_RENAME, "out", "a", "in", "b")), MESSAGE_NOT_LOADED);
    load("out");
    born("out", "a");
    cr_assert_eq(result(ME, two_names(MESSAGE_RENAME, "out", "a", "in", "b")), MESSAGE_NOT_LOADED, "the second directory");
    cr_assert_eq(operation_count(shuntd.home), 0, "nothing is held");
}

Test(load, a_loaded_directory_is_told_its_new_place)
{
    struct dirid id = id_of("out");
    load("out");
    cr_assert_eq(rename(place_path("r/out"), place_path("r/moved")), 0);
    cr_assert_eq(result(ME, load_message(id, "moved")), 0);
    cr_assert_str_eq(home_of("moved")->path, "moved");
    cr_assert_eq(shuntd.counts.loads, 1);
}

/* Creates. */

Test(serve, auto_leaves_a_directory_of_one_node_alone)
{
    shuntd.options.placement = CONFIG_AUTO;
    for (int i = 0; i < 40; i++) {
        char name[8];
        snprintf(name, sizeof name, "f%d", i);
        const struct message *answer = ask(ME, reserve("out", name, DT_REG));
        cr_assert(answer->result == 0 && answer->answer.entry[0].branch == 0 && answer->answer.place[0].length == 0);
        confirm(ME, "out", name, make_at(place_path("r/out/%s", name)));
    }
    assert_entry("out", "f39", RECORD_LIVE, 0, ino_at(place_path("r/out/f39")));
    cr_assert_not(place_has("r/out/.shunt-dir"));
    cr_assert_eq(place_count("r/.shunt/b/n1.1"), 0);
    cr_assert(shuntd.counts.creates == 40 && shuntd.counts.redirected == 0);
}

Test(serve, branch_makes_a_mirror_at_the_first_create)
{
    struct record_dir record;
    struct marker marker;
    char expected[128];
    cr_assert_eq(chmod(place_path("r/out"), 0751), 0);
    uint32_t tag = post(ME, reserve("out", "a", DT_REG));
    cr_assert(waits(tag), "for the leaf");
    serving_settle();
    const struct message *answer = answer_to(tag);
    cr_assert_eq(result_of(tag), 0);
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    snprintf(expected, sizeof expected, "n1.1/%s/0", record.mirror);
    cr_assert_eq(strlen(expected), answer->answer.place[0].length);
    cr_assert_eq(memcmp(expected, answer->answer.place[0].text, answer->answer.place[0].length), 0);
    cr_assert(answer->answer.entry[0].branch == 1 && answer->answer.entry[0].leaf == 0);
    cr_assert_eq(answer->answer.entry[0].state, RECORD_PENDING);
    assert_entry("out", "a", RECORD_PENDING, 1000, 0);
    cr_assert_eq(record.flags, RECORD_LOADED | RECORD_MARKED);
    cr_assert_gt(record.changed, 0, "the trunk's times do not show it");
    int fd = place_open("r/out");
    cr_assert_eq(marker_read(fd, &marker), 0);
    close(fd);
    cr_assert_eq(marker.id, record.marker);
    cr_assert_str_eq(marker.mirror, record.mirror);
    cr_assert(dirid_equal(marker.directory, id_of("out")));
    struct stat leaf;
    cr_assert_eq(stat(place_path("r/.shunt/b/%s", expected), &leaf), 0);
    cr_assert_eq(leaf.st_mode & 07777, 0751, "as the trunk directory");
    cr_assert(shuntd.counts.creates == 1 && shuntd.counts.redirected == 1);
}

Test(serve, confirmed_it_is_there)
{
    const struct message *answer = ask(ME, reserve("out", "a", DT_REG));
    uint64_t ino = make_at(place_of(answer, 0, "out", "a"));
    cr_assert_eq(leaf_holds("out", 0), 1, "it counts from when it may be made");
    confirm(ME, "out", "a", ino);
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    cr_assert_eq(leaf_holds("out", 0), 1);
    cr_assert_eq(operation_count(shuntd.home), 0);
    answer = ask(YOU, named(MESSAGE_LOOKUP, "out", "a"));
    cr_assert_eq(answer->result, MESSAGE_EXISTS);
    cr_assert_eq(answer->answer.entry[0].ino, ino);
    cr_assert_eq(ino_at(place_of(answer, 0, "out", "a")), ino);
}

Test(serve, withdrawn_it_never_was)
{
    ask(ME, reserve("out", "a", DT_REG));
    tell(ME, named(MESSAGE_ABORT, "out", "a"));
    cr_assert(is_unknown("out", "a"));
    cr_assert(leaf_holds("out", 0) == 0 && operation_count(shuntd.home) == 0);
    cr_assert_eq(result(ME, named(MESSAGE_LOOKUP, "out", "a")), MESSAGE_ABSENT);
    cr_assert_eq(result(YOU, reserve("out", "a", DT_REG)), 0, "free again");
}

Test(serve, what_exists_is_not_born_again)
{
    uint64_t ino = born("out", "a");
    const struct message *answer = ask(YOU, reserve("out", "a", DT_REG));
    cr_assert_eq(answer->result, MESSAGE_EXISTS);
    cr_assert(answer->answer.entry[0].ino == ino && answer->answer.entry[0].state == RECORD_LIVE);
    cr_assert_eq(ino_at(place_of(answer, 0, "out", "a")), ino, "and where it is");
    answer = ask(YOU, reserve("out", "a", DT_DIR));
    cr_assert_eq(answer->result, MESSAGE_EXISTS, "nor as anything else");
    cr_assert_eq(operation_count(shuntd.home), 0);
}

Test(serve, the_same_name_remote_is_another)
{
    ask(ME, reserve("out", "a", DT_REG));
    cr_assert_eq(result(YOU, reserve("in", "a", DT_REG)), 0);
    cr_assert_eq(result(YOU, reserve("out", "aa", DT_REG)), 0);
    cr_assert_eq(operation_count(shuntd.home), 3);
}

Test(serve, one_create_of_a_name_at_a_time)
{
    const struct message *answer = ask(ME, reserve("out", "a", DT_REG));
    uint32_t second = post(YOU, reserve("out", "a", DT_REG));
    uint32_t look = post(YOU + 1, named(MESSAGE_LOOKUP, "out", "a"));
    cr_assert(waits(second) && waits(look));
    uint64_t ino = make_at(place_of(answer, 0, "out", "a"));
    confirm(ME, "out", "a", ino);
    cr_assert_eq(result_of(second), MESSAGE_EXISTS);
    cr_assert_eq(answer_to(second)->answer.entry[0].ino, ino);
    cr_assert_eq(result_of(look), MESSAGE_EXISTS);
    cr_assert_lt(replies[second].turn, replies[look].turn, "in the order of their coming");
    cr_assert_eq(shuntd.counts.blocked, 3, "one of them for the first leaf");
}

Test(serve, withdrawn_it_is_the_next_one_s)
{
    ask(ME, reserve("out", "a", DT_REG));
    uint32_t second = post(YOU, reserve("out", "a", DT_REG));
    uint32_t third = post(YOU + 1, reserve("out", "a", DT_REG));
    tell(ME, named(MESSAGE_ABORT, "out", "a"));
    cr_assert_eq(result_of(second), 0);
    cr_assert(waits(third));
    tell(YOU, named(MESSAGE_ABORT, "out", "a"));
    cr_assert_eq(result_of(third), 0);
    assert_entry("out", "a", RECORD_PENDING, 1000, 0);
}

Test(serve, only_who_reserved_may_confirm)
{
    ask(ME, reserve("out", "a", DT_REG));
    confirm(YOU, "out", "a", 77);
    tell(YOU, named(MESSAGE_ABORT, "out", "a"));
    tell(ME, named(MESSAGE_UNLINKED, "out", "a"));
    assert_entry("out", "a", RECORD_PENDING, 1000, 0);
    confirm(ME, "in", "a", 77);
    cr_assert(is_unknown("in", "a"), "nobody reserved that");
}

Test(serve, who_does_not_go_to_a_branch)
{
    struct message message = reserve("out", "a", DT_REG);
    message.flags = MESSAGE_TRUNK;
    const struct message *answer = ask(ME, message);
    cr_assert(answer->answer.entry[0].branch == 0 && answer->answer.place[0].length == 0, "it was to stay in the trunk");
    static const uint8_t types[] = {DT_DIR, DT_LNK, DT_FIFO, DT_SOCK, DT_CHR};
    for (size_t i = 0; i < sizeof types; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%zu", i);
        answer = ask(ME, reserve("out", name, types[i]));
        cr_assert(answer->result == 0 && answer->answer.entry[0].branch == 0, "type %d", types[i]);
        cr_assert_eq(answer->answer.entry[0].type, types[i]);
    }
    cr_assert_not(place_has("r/out/.shunt-dir"));
    cr_assert_eq(shuntd.counts.redirected, 0);
}

Test(serve, what_was_made_may_differ_from_what_was_reserved)
{
    ask(ME, reserve("out", "a", DT_REG));
    tell(ME, with_entry(named(MESSAGE_COMMIT, "out", "a"), DT_LNK, 7));
    struct record_entry entry;
    cr_assert_eq(entry_of("out", "a", &entry), 0);
    cr_assert_eq(entry.type, DT_LNK);
}

Test(serve, a_full_leaf_is_followed_by_another)
{
    shuntd.options.leaf_full = 2;
    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "f%d", i * i); /* no sequence */
        assert_entry("out", name, RECORD_LIVE, 1000u + (unsigned)i / 2, born("out", name));
    }
    cr_assert(leaf_holds("out", 0) == 2 && leaf_holds("out", 1) == 2 && leaf_holds("out", 2) == 1);
    cr_assert_eq(place_count(place_path("r/.shunt/b/n1.1/%s", home_of("out")->record.mirror) + strlen(place) + 1), 3);
}

Test(serve, the_leaves_of_an_earlier_session_are_left_alone)
{
    mark_by_hand(".", "root-5f3a9c01d2e4");
    place_directory("r/.shunt/b/n1.1/root-5f3a9c01d2e4/4");
    place_file("r/.shunt/b/n1.1/root-5f3a9c01d2e4/4/old", "");
    load(".");
    born(".", "new");
    cr_assert(place_has("r/.shunt/b/n1.1/root-5f3a9c01d2e4/5/new"), "the marker is kept, the number is new");
}

Test(serve, a_directory_is_loaded_when_it_is_born)
{
    struct record_dir record;
    born_directory("out", "sub");
    cr_assert_str_eq(home_of("out/sub")->path, "out/sub");
    cr_assert_eq(record_of(id_of("out/sub"), &record), 0);
    cr_assert_eq(record.flags, RECORD_LOADED);
    cr_assert_eq(result(ME, named(MESSAGE_LOOKUP, "out/sub", "x")), MESSAGE_ABSENT);
    load(".");
    born_directory(".", "top");
    cr_assert_str_eq(home_of("top")->path, "top");
    cr_assert_eq(shuntd.counts.loads, 3, "neither was listed");
}

Test(serve, a_directory_too_deep_to_be_served)
{
    struct home_dir *out = home_of("out");
    const char *const names[] = {"fits", "longer"};
    char deep[PATH_MAX];
    size_t length = PATH_MAX - 1 - NAME_MAX - 1 - strlen("/fits") - strlen(shuntd.root.path) - strlen("/");
    memset(deep, 'd', length);
    deep[length] = '\0';
    cr_assert_eq(home_dir_set_path(shuntd.home, out, deep), 0);
    for (uint64_t i = 0; i < 2; i++) {
        cr_assert_eq(result(ME, reserve("out", names[i], DT_DIR)), 0);
        struct message message = with_entry(named(MESSAGE_COMMIT, "out", names[i]), DT_DIR, 70 + i);
        message.commit.child = (struct dirid){70 + i, 1};
        tell(ME, message);
    }
    cr_assert_not_null(home_dir_find(shuntd.home, (struct dirid){70, 1}), "a path leads to all it can have");
    cr_assert_null(home_dir_find(shuntd.home, (struct dirid){71, 1}), "it is the trunk's only");
    cr_assert_not(is_unknown("out", "longer"));
}

/* Where no leaf can be made. */

Test(serve, no_marker_no_branch)
{
    struct record_dir record;
    place_file("r/out/.shunt-dir", "not ours");
    for (int i = 0; i < 2; i++) {
        const struct message *answer = ask(ME, reserve("out", i == 0 ? "a" : "b", DT_REG));
        cr_assert(answer->result == 0 && answer->answer.entry[0].branch == 0);
    }
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    cr_assert_eq(record.why, RECORD_WHY_MARKER, "for good");
    const struct message *status = ask(ME, (struct message){.type = MESSAGE_STATUS});
    cr_assert(memmem(status->text_answer.text.text, status->text_answer.text.length, "pinned marker out\n", 18));
}

Test(serve, no_branch_this_time)
{
    struct record_dir record;
    cr_assert_eq(rename(shuntd.branch_path, place_path("aside")), 0);
    place_file("r/.shunt/b/n1.1", "in the way");
    uint32_t first = post(ME, reserve("out", "a", DT_REG)), second = post(YOU, reserve("out", "b", DT_REG));
    serving_settle();
    cr_assert(result_of(first) == 0 && result_of(second) == 0);
    assert_entry("out", "a", RECORD_PENDING, 0, 0);
    assert_entry("out", "b", RECORD_PENDING, 0, 0);
    cr_assert_eq(record_of(id_of("out"), &record), 0);
    cr_assert(record.why == RECORD_WHY_NOT && record.marker == 0);
    cr_assert_not(place_has("r/out/.shunt-dir"), "no marker without a mirror");
    cr_assert(unlink(shuntd.branch_path) == 0 && rename(place_path("aside"), shuntd.branch_path) == 0);
    born("out", "c");
    assert_entry("out", "c", RECORD_LIVE, 1000, ino_at(place_path("r/.shunt/b/n1.1/%s/0/c", home_of("out")->record.mirror)));
}

Test(serve, a_directory_that_was_moved_natively_is_asked_for_its_place)
{
    struct dirid id = id_of("out");
    struct message message = reserve("out", "a", DT_REG);
    struct record_dir record;
    cr_assert_eq(rename(place_path("r/out"), place_path("r/moved")), 0);
    cr_assert_eq(result(ME, message), MESSAGE_NOT_LOADED);
    cr_assert_eq(record_of(id, &record), -ENOENT, "readers are to ask");
    load("moved");
    born("moved", "a");
    cr_assert(place_has("r/moved/.shunt-dir"));
}

/* Found and lost in the trunk. */

Test(serve, what_is_found_is_adopted)
{
    place_file("r/out/native", "");
    uint64_t ino = ino_at(place_path("r/out/native"));
    struct message adopt = with_entry(named(MESSAGE_ADOPT, "out", "native"), DT_REG, ino);
    adopt.found.entry.state = RECORD_DYING;
    adopt.found.entry.branch = 2;
    adopt.found.entry.leaf = 3;
    const struct message *answer = ask(ME, adopt);
    cr_assert_eq(answer->result, 0);
    assert_entry("out", "native", RECORD_LIVE, 0, ino);
    adopt.found.entry.ino = ino + 1;
    answer = ask(YOU, adopt);
    cr_assert_eq(answer->result, MESSAGE_EXISTS);
    cr_assert_eq(answer->answer.entry[0].ino, ino, "the first stays");
}

Test(serve, what_takes_the_place_of_a_file_is_adopted)
{
    place_file("r/out/native", "");
    uint64_t ino = ino_at(place_path("r/out/native"));
    cr_assert_eq(result(ME, with_entry(named(MESSAGE_ADOPT, "out", "native"), DT_REG, ino)), 0);
    cr_assert_eq(unlink(place_path("r/out/native")), 0);
    cr_assert_eq(result(YOU, with_entry(named(MESSAGE_ADOPT, "out", "native"), DT_DIR, ino)), MESSAGE_EXISTS);
    assert_entry("out", "native", RECORD_LIVE, 0, ino);
    cr_assert_eq(mkdir(place_path("r/out/native"), 0700), 0);
    const uint64_t other = ino_at(place_path("r/out/native"));
    const struct message *answer = ask(YOU, with_entry(named(MESSAGE_ADOPT, "out", "native"), DT_DIR, other));
    cr_assert_eq(answer->result, 0);
    cr_assert_eq(answer->answer.entry[0].type, DT_DIR);
    assert_entry("out", "native", RECORD_LIVE, 0, other);
    uint64_t redirected = born("out", "mine");
    cr_assert_eq(result(YOU, with_entry(named(MESSAGE_ADOPT, "out", "mine"), DT_DIR, other)), MESSAGE_EXISTS);
    assert_entry("out", "mine", RECORD_LIVE, 1000, redirected);
}

Test(serve, what_is_gone_again_is_not_adopted)
{
    cr_assert_eq(result(ME, with_entry(named(MESSAGE_ADOPT, "out", "native"), DT_REG, 5)), MESSAGE_ABSENT);
    cr_assert_eq(result(ME, named(MESSAGE_LOOKUP, "out", "native")), MESSAGE_ABSENT);
}

Test(serve, what_is_there_now_is_adopted)
{
    place_file("r/out/native", "");
    uint64_t ino = ino_at(place_path("r/out/native"));
    cr_assert_eq(result(ME, with_entry(named(MESSAGE_ADOPT, "out", "native"), DT_FIFO, ino + 1)), 0);
    assert_entry("out", "native", RECORD_LIVE, 0, ino);
}

Test(serve, who_adopts_tells_where_a_directory_is_now)
{
    struct message adopt = with_entry(named(MESSAGE_ADOPT, "out", "native"), DT_REG, 5);
    char from[PATH_MAX];
    strcpy(from, place_path("r/out"));
    cr_assert_eq(rename(from, place_path("r/elsewhere")), 0);
    cr_assert_eq(result(ME, adopt), MESSAGE_NOT_LOADED);
    cr_assert_eq(rename(place_path("r/elsewhere"), from), 0);
}

Test(serve, adopting_waits_for_who_makes_it)
{
    const struct message *answer = ask(ME, reserve("out", "a", DT_REG));
    uint32_t tag = post(YOU, with_entry(named(MESSAGE_ADOPT, "out", "a"), DT_REG, 5));
    cr_assert(waits(tag));
    uint64_t ino = make_at(place_of(answer, 0, "out", "a"));
    confirm(ME, "out", "a", ino);
    cr_assert_eq(result_of(tag), MESSAGE_EXISTS);
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
}

/* VANISHED as a client sends it: with the entry it went by. */
static int test_ops_vanished(const char *directory, const char *name, const struct record_entry *went_by)
{
    struct message message = named(MESSAGE_VANISHED, directory, name);
    message.found.entry = *went_by;
    return result(ME, message);
}

Test(serve, all_are_told_to_end)
{
    cr_assert_eq(result(ME, (struct message){.type = MESSAGE_STOP}), 0);
    cr_assert_neq(shuntd.stop, 0);
    shuntd.stop = 0;
}

Test(serve, what_vanished_is_forgotten)
{
    struct record_entry entry;
    born("out", "a");
    cr_assert_eq(entry_of("out", "a", &entry), 0);
    cr_assert_eq(test_ops_vanished("out", "a", &entry), MESSAGE_CHANGED, "it is there");
    assert_entry("out", "a", RECORD_LIVE, 1000, entry.ino);
    const struct message *answer = ask(ME, named(MESSAGE_LOOKUP, "out", "a"));
    cr_assert_eq(unlink(place_of(answer, 0, "out", "a")), 0);
    struct record_entry other = entry;
    other.ino++;
    cr_assert_eq(test_ops_vanished("out", "a", &other), MESSAGE_CHANGED, "somebody went by an older entry");
    assert_entry("out", "a", RECORD_LIVE, 1000, entry.ino);
    cr_assert_eq(test_ops_vanished("out", "a", &entry), 0);
    cr_assert(is_unknown("out", "a"));
    cr_assert_eq(test_ops_vanished("out", "a", &entry), MESSAGE_ABSENT);
}

/* A file of the trunk that is known, and its directory, which is somewhere else for a while. */
static struct record_entry test_ops_known_in_moved(char from[PATH_MAX])
{
    struct record_entry entry;
    const uint64_t ino = make_at(place_path("r/out/kept"));
    cr_assert_eq(result(ME, with_entry(named(MESSAGE_ADOPT, "out", "kept"), DT_REG, ino)), 0);
    cr_assert_eq(entry_of("out", "kept", &entry), 0);
    strcpy(from, place_path("r/out"));
    return entry;
}

Test(serve, what_is_not_found_elsewhere_has_not_vanished)
{
    char from[PATH_MAX];
    const struct record_entry entry = test_ops_known_in_moved(from);
    struct message vanished = named(MESSAGE_VANISHED, "out", "kept");
    vanished.found.entry = entry;
    cr_assert_eq(rename(from, place_path("r/elsewhere")), 0);
    cr_assert_eq(result(ME, vanished), MESSAGE_NOT_LOADED, "it was looked for in another directory");
    cr_assert_eq(rename(place_path("r/elsewhere"), from), 0);
    assert_entry("out", "kept", RECORD_LIVE, 0, entry.ino);
    cr_assert_eq(unlink(place_path("r/out/kept")), 0);
    cr_assert_eq(test_ops_vanished("out", "kept", &entry), 0);
    cr_assert(is_unknown("out", "kept"));
}

Test(serve, what_cannot_be_told_was_not_removed)
{
    char from[PATH_MAX];
    const struct record_entry entry = test_ops_known_in_moved(from);
    cr_assert_eq(ask(ME, named(MESSAGE_UNLINK, "out", "kept"))->result, 0);
    cr_assert_eq(rename(from, place_path("r/elsewhere")), 0);
    client_ends(ME);
    cr_assert_eq(rename(place_path("r/elsewhere"), from), 0);
    assert_entry("out", "kept", RECORD_LIVE, 0, entry.ino);
}

Test(serve, a_link_that_leads_nowhere_has_not_vanished)
{
    struct record_entry entry;
    cr_assert_eq(symlink("nowhere", place_path("r/out/link")), 0);
    uint64_t ino = ino_at(place_path("r/out/link"));
    cr_assert_eq(result(ME, with_entry(named(MESSAGE_ADOPT, "out", "link"), DT_LNK, ino)), 0);
    cr_assert_eq(entry_of("out", "link", &entry), 0);
    cr_assert_eq(test_ops_vanished("out", "link", &entry), MESSAGE_CHANGED);
}

Test(serve, what_came_in_place_of_a_file_is_known_when_that_has_vanished)
{
    struct record_entry entry;
    const uint64_t ino = make_at(place_path("r/out/file"));
    cr_assert_eq(result(ME, with_entry(named(MESSAGE_ADOPT, "out", "file"), DT_REG, ino)), 0);
    cr_assert_eq(entry_of("out", "file", &entry), 0);
    cr_assert_eq(unlink(place_path("r/out/file")), 0);
    cr_assert_eq(symlink("nowhere", place_path("r/out/file")), 0);
    cr_assert_eq(test_ops_vanished("out", "file", &entry), MESSAGE_CHANGED);
    assert_entry("out", "file", RECORD_LIVE, 0, ino_at(place_path("r/out/file")));
    cr_assert_eq(entry_of("out", "file", &entry), 0);
    cr_assert_eq(entry.type, DT_LNK);
}

/* Removal. */

Test(serve, a_unlink_holds_the_name)
{
    uint64_t ino = born("out", "a");
    const struct message *answer = ask(ME, named(MESSAGE_UNLINK, "out", "a"));
    cr_assert_eq(answer->result, 0);
    cr_assert(answer->answer.entry[0].ino == ino && answer->answer.entry[0].branch == 1);
    assert_entry("out", "a", RECORD_DYING, 1000, ino);
    uint32_t again = post(YOU, reserve("out", "a", DT_REG));
    cr_assert(waits(again));
    cr_assert_eq(unlink(place_of(answer, 0, "out", "a")), 0);
    tell(ME, named(MESSAGE_UNLINKED, "out", "a"));
    cr_assert_eq(result_of(again), 0, "the name is free");
    cr_assert_eq(leaf_holds("out", 0), 1, "the one that is to be made");
    tell(YOU, named(MESSAGE_ABORT, "out", "a"));
    cr_assert_eq(leaf_holds("out", 0), 0);
    cr_assert(is_unknown("out", "a"));
    cr_assert_eq(shuntd.counts.unlinks, 1);
}

Test(serve, a_unlink_that_failed)
{
    uint64_t ino = born("out", "a");
    ask(ME, named(MESSAGE_UNLINK, "out", "a"));
    tell(YOU, named(MESSAGE_UNLINKED, "out", "a"));
    assert_entry("out", "a", RECORD_DYING, 1000, ino);
    tell(ME, named(MESSAGE_ABORT, "out", "a"));
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    cr_assert_eq(leaf_holds("out", 0), 1);
}

Test(serve, what_goes_from_another_branch_is_not_counted_here)
{
    born("out", "mine");
    foreign("out", "a", 0);
    const struct message *answer = ask(ME, named(MESSAGE_UNLINK, "out", "a"));
    cr_assert_eq(unlink(place_of(answer, 0, "out", "a")), 0);
    tell(ME, named(MESSAGE_UNLINKED, "out", "a"));
    cr_assert(is_unknown("out", "a"));
    cr_assert_eq(leaf_holds("out", 0), 1);
}

Test(serve, nothing_to_remove)
{
    cr_assert_eq(result(ME, named(MESSAGE_UNLINK, "out", "a")), MESSAGE_ABSENT);
    cr_assert_eq(result(ME, named(MESSAGE_PROMOTE, "out", "a")), MESSAGE_ABSENT);
    cr_assert_eq(operation_count(shuntd.home), 0);
}

Test(serve, a_unlink_is_a_change_of_the_directory)
{
    born("out", "a");
    cr_assert_eq(result(ME, about(MESSAGE_SETTLE, "out")), 0);
    cr_assert_eq(home_of("out")->record.changed, 0);
    ask(ME, named(MESSAGE_UNLINK, "out", "a"));
    cr_assert_gt(home_of("out")->record.changed, 0);
}

/* A file from outside the root was renamed onto it. */
Test(serve, a_name_that_was_held_and_taken_over)
{
    born("out", "a");
    const struct message *answer = ask(ME, named(MESSAGE_UNLINK, "out", "a"));
    place_file("outside", "x");
    uint64_t ino = ino_at(place_path("outside"));
    cr_assert_eq(rename(place_path("outside"), place_of(answer, 0, "out", "a")), 0);
    confirm(ME, "out", "a", ino);
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    cr_assert_eq(leaf_holds("out", 0), 1, "one came, one went");
}

/* To the trunk. */

Test(serve, a_file_is_promoted)
{
    uint64_t ino = born("out", "a");
    const struct message *answer = ask(ME, named(MESSAGE_PROMOTE, "out", "a"));
    cr_assert_eq(answer->result, 0);
    uint32_t look = post(YOU, named(MESSAGE_LOOKUP, "out", "a"));
    cr_assert(waits(look));
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    cr_assert_eq(rename(place_of(answer, 0, "out", "a"), place_path("r/out/a")), 0);
    confirm(ME, "out", "a", ino);
    assert_entry("out", "a", RECORD_LIVE, 0, ino);
    cr_assert_eq(leaf_holds("out", 0), 0);
    cr_assert_eq(result_of(look), MESSAGE_EXISTS);
    cr_assert_eq(answer_to(look)->answer.place[0].length, 0);
}

Test(serve, a_promotion_that_failed)
{
    uint64_t ino = born("out", "a");
    ask(ME, named(MESSAGE_PROMOTE, "out", "a"));
    tell(ME, named(MESSAGE_UNLINKED, "out", "a"));
    tell(ME, named(MESSAGE_ABORT, "out", "a"));
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    cr_assert_eq(leaf_holds("out", 0), 1);
}

/* A client that ends in between: the disk tells. */

Test(serve, a_client_ends_before_it_made_the_file)
{
    ask(ME, reserve("out", "a", DT_REG));
    uint32_t other = post(YOU, reserve("out", "a", DT_REG));
    client_ends(ME);
    cr_assert_eq(result_of(other), 0);
    client_ends(YOU);
    cr_assert(is_unknown("out", "a"));
    cr_assert_eq(leaf_holds("out", 0), 0);
}

Test(serve, a_client_ends_after_it_made_the_file)
{
    const struct message *answer = ask(ME, reserve("out", "a", DT_REG));
    uint64_t ino = make_at(place_of(answer, 0, "out", "a"));
    uint32_t other = post(YOU, reserve("out", "a", DT_REG));
    client_ends(YOU + 1);
    cr_assert(waits(other), "that was somebody else");
    client_ends(ME);
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    cr_assert_eq(leaf_holds("out", 0), 1);
    cr_assert_eq(result_of(other), MESSAGE_EXISTS);
}

Test(serve, a_client_ends_after_it_made_a_directory)
{
    ask(ME, reserve("out", "sub", DT_DIR));
    cr_assert_eq(mkdir(place_path("r/out/sub"), 0755), 0);
    client_ends(ME);
    assert_entry("out", "sub", RECORD_LIVE, 0, id_of("out/sub").ino);
    cr_assert_eq(result(YOU, named(MESSAGE_LOOKUP, "out/sub", "x")), MESSAGE_NOT_LOADED, "it may have been there before");
}

Test(serve, a_client_ends_around_a_unlink)
{
    uint64_t ino = born("out", "a");
    const struct message *answer = ask(ME, named(MESSAGE_UNLINK, "out", "a"));
    client_ends(ME);
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    answer = ask(ME, named(MESSAGE_UNLINK, "out", "a"));
    cr_assert_eq(unlink(place_of(answer, 0, "out", "a")), 0);
    client_ends(ME);
    cr_assert(is_unknown("out", "a"));
    cr_assert_eq(leaf_holds("out", 0), 0);
}

Test(serve, a_client_ends_after_it_took_a_name_over)
{
    born("out", "a");
    const struct message *answer = ask(ME, named(MESSAGE_UNLINK, "out", "a"));
    place_file("outside", "x");
    uint64_t ino = ino_at(place_path("outside"));
    cr_assert_eq(rename(place_path("outside"), place_of(answer, 0, "out", "a")), 0);
    client_ends(ME);
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    cr_assert_eq(leaf_holds("out", 0), 1);
}

Test(serve, a_client_ends_around_a_promotion)
{
    uint64_t ino = born("out", "a");
    ask(ME, named(MESSAGE_PROMOTE, "out", "a"));
    client_ends(ME);
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    const struct message *answer = ask(ME, named(MESSAGE_PROMOTE, "out", "a"));
    cr_assert_eq(rename(place_of(answer, 0, "out", "a"), place_path("r/out/a")), 0);
    client_ends(ME);
    assert_entry("out", "a", RECORD_LIVE, 0, ino);
}

/* A node is lost of which a process had the name: its home here looks where a promotion takes it, too. */
static void lost_with_the_name(const char *name)
{
    const struct name_question claim = {
        .op = NAME_CLAIM, .member = 9, .id = 1, .dir = id_of("out"), .name = name, .length = strlen(name)};
    struct name_answer answer;
    cr_assert_eq(home_ask(shuntd.home, &claim, &answer), 0);
    cr_assert_eq(answer.result, MESSAGE_EXISTS);
    cr_assert_eq(completion_settle_member(&shuntd, 9), 0);
}

Test(serve, a_node_is_lost_around_a_promotion)
{
    uint64_t ino = born("out", "a");
    const struct message *answer = ask(ME, named(MESSAGE_LOOKUP, "out", "a"));
    lost_with_the_name("a");
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
    cr_assert_eq(rename(place_of(answer, 0, "out", "a"), place_path("r/out/a")), 0);
    lost_with_the_name("a");
    assert_entry("out", "a", RECORD_LIVE, 0, ino);
}

Test(serve, a_node_is_lost_after_a_removal)
{
    born("out", "a");
    const struct message *answer = ask(ME, named(MESSAGE_LOOKUP, "out", "a"));
    cr_assert_eq(rename(place_of(answer, 0, "out", "a"), place_path("elsewhere")), 0, "so its inode is not used again");
    place_file("r/out/a", "native");
    lost_with_the_name("a");
    cr_assert(is_unknown("out", "a"), "it is found as what programs without the shim make is");
}

/* Once its files have left, a directory stays as it is until it is hot again. */
Test(serve, a_directory_that_was_emptied_is_cold)
{
    uint64_t ino[2] = {born("out", "a"), born("out", "b")};
    home_of("out")->leaves.creates = 40;
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "a" : "b";
        const struct message *answer = ask(ME, named(MESSAGE_PROMOTE, "out", name));
        cr_assert_eq(rename(place_of(answer, 0, "out", name), place_path("r/out/%s", name)), 0);
        confirm(ME, "out", name, ino[i]);
        cr_assert_eq(home_of("out")->leaves.creates, i == 0 ? 40 : 0);
    }
}

/* A program without the shim made another file of that name in the trunk: nothing was promoted. */
Test(serve, a_client_ends_before_a_promotion_that_was_without_success)
{
    uint64_t ino = born("out", "a");
    ask(ME, named(MESSAGE_PROMOTE, "out", "a"));
    place_file("r/out/a", "native");
    client_ends(ME);
    assert_entry("out", "a", RECORD_LIVE, 1000, ino);
}

Test(serve, a_client_ends_with_several_names)
{
    char name[8];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "f%d", i);
        const struct message *answer = ask(ME, reserve("out", name, DT_REG));
        if (i % 2 == 0)
            make_at(place_of(answer, 0, "out", name));
    }
    client_ends(ME);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "f%d", i);
        cr_assert_eq(is_unknown("out", name), i % 2 != 0, "%s", name);
    }
    cr_assert_eq(leaf_holds("out", 0), 10);
    cr_assert_eq(home_of("out")->operations, 0);
}

/* The rest. */

static uint64_t count_of(const struct message *status, const char *key)
{
    char text[4096], line[64];
    snprintf(text, sizeof text, "\n%.*s", status->text_answer.text.length, status->text_answer.text.text);
    snprintf(line, sizeof line, "\n%s ", key);
    const char *at = strstr(text, line);
    cr_assert(at, "no %s in the status", key);
    return strtoull(at + strlen(line), NULL, 10);
}

Test(serve, status_counts)
{
    born("out", "a");
    born_in_trunk("out", "b");
    ask(ME, named(MESSAGE_UNLINK, "out", "a"));
    ask(ME, two_names(MESSAGE_RENAME, "out", "b", "in", "c"));
    const struct message *status = ask(ME, (struct message){.type = MESSAGE_STATUS});
    static const struct {
        const char *key;
        uint64_t value;
    } expected[] = {{"creates", 2},   {"redirected", 1},  {"unlinks", 1},   {"renames", 1},
                    {"loads", 2},     {"malformed", 0},   {"blocked", 1},   {"client_exits", 0},
                    {"in_flight", 3}, {"directories", 2}, {"index_keys", 6}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        cr_assert_eq(count_of(status, expected[i].key), expected[i].value, "%s is %lu", expected[i].key,
                     count_of(status, expected[i].key));
    cr_assert_gt(count_of(status, "index_bytes"), 0);
}

Test(serve, a_status_that_is_too_long_ends_with_a_whole_line)
{
    char name[256];
    memset(name, 'x', 250);
    for (int i = 0; i < 20; i++) {
        snprintf(name + 240, 16, "%d", i);
        born_directory("out", name);
        char path[300];
        snprintf(path, sizeof path, "out/%s", name);
        home_of(path)->record.why = RECORD_WHY_OWNER;
    }
    const struct message *status = ask(ME, (struct message){.type = MESSAGE_STATUS});
    cr_assert_gt(status->text_answer.text.length, 1000);
    cr_assert_eq(status->text_answer.text.text[status->text_answer.text.length - 1], '\n');
    cr_assert(memmem(status->text_answer.text.text, status->text_answer.text.length, "pinned owner out/xxx", 20));
}

Test(serve, a_ping_is_answered)
{
    cr_assert_eq(result(ME, (struct message){.type = MESSAGE_PING}), 0);
}

Test(serve, nobody_asks_with_an_answer)
{
    serving_hand(ME, 1, &(struct message){.type = MESSAGE_ANSWER});
    cr_assert_eq(shuntd.counts.malformed, 1);
    cr_assert_eq(shuntd.answers->count, 0);
}
