/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "home/home.h"

#include "base/clock.h"
#include "home_fixture.h"
#include "place.h"
#include "shuntd.h"

static const struct dirid one = {1, 10}, two = {2, 20}, three = {3, 30};
static struct shuntd shuntd;

static void rooms_init(void)
{
    const struct index_stamp stamp = {.session = 1, .root = {9, 9}};
    place_init();
    memset(&shuntd, 0, sizeof shuntd);
    shuntd.now = clock_monotonic();
    cr_assert_eq(index_create(&shuntd.index, place, 16u << 20, &stamp), 0);
    cr_assert_eq(listen_create(&shuntd.listen, place, 1, (struct dirid){9, 9}, 0), 0);
    home_fixture_create(&shuntd);
}

static void rooms_finish(void)
{
    home_destroy(shuntd.home);
    listen_destroy(shuntd.listen);
    index_destroy(shuntd.index);
    place_finish();
}

TestSuite(home, .init = rooms_init, .fini = rooms_finish);

static struct home_dir *home_add(struct dirid id, const char *path)
{
    struct home_dir *dir = home_dir_add(shuntd.home, id, path);
    cr_assert_not_null(dir);
    return dir;
}

/* A request as listen hands it over: names point into its bytes. */
static struct listen_request some_request(pid_t client, uint32_t tag, const char *name)
{
    const struct message message = {.type = MESSAGE_RENAME,
                                    .tag = tag,
                                    .dir = one,
                                    .name = message_text(name, strlen(name)),
                                    .rename.to_name = message_text("other", 5)};
    struct listen_request request = {.client = client, .qp = 7};
    request.size = (uint32_t)message_encode(request.bytes, sizeof request.bytes, &message);
    cr_assert_eq(message_decode(&request.message, request.bytes, request.size), 0);
    return request;
}

/* The struct was copied by value: the names are made to point into this copy. */
static struct listen_request *home_settle(struct listen_request *request)
{
    cr_assert_eq(message_decode(&request->message, request->bytes, request->size), 0);
    return request;
}

static struct operation *home_begin(enum operation_kind kind, struct home_dir *dir, const char *name, pid_t client)
{
    struct listen_request request = some_request(client, 3, name);
    struct operation *operation = operation_begin(shuntd.home, kind, dir, name, strlen(name), home_settle(&request));
    cr_assert_not_null(operation);
    return operation;
}

static void test_home_block(struct link *waiting, pid_t client, uint32_t tag, const char *name)
{
    struct listen_request request = some_request(client, tag, name);
    cr_assert_eq(home_block(shuntd.home, waiting, home_settle(&request)), 0);
    memset(&request, 0xee, sizeof request);
}

/* The tag of the next woken request, 0 if there is none. */
static uint32_t next_woken(void)
{
    struct blocked_request *blocked = home_next_retry(shuntd.home);
    struct listen_request request = {.message.tag = 0};
    if (blocked != NULL)
        home_restore_request(blocked, &request);
    free(blocked);
    return request.message.tag;
}

Test(home, directories_come_and_go)
{
    cr_assert_null(home_dir_find(shuntd.home, one));
    struct home_dir *dir = home_add(one, "out");
    cr_assert_eq(home_dir_find(shuntd.home, one), dir);
    cr_assert_null(home_dir_find(shuntd.home, (struct dirid){1, 11}), "the same inode number, another birth");
    cr_assert_eq(home_add(one, "moved/out"), dir, "known already");
    cr_assert_str_eq(dir->path, "moved/out");
    cr_assert_eq(home_dir_count(shuntd.home), 1);
    cr_assert_not(home_dir_is_loaded(dir));
    cr_assert_not(home_dir_is_loaded(NULL));
    dir->record.flags = RECORD_LOADED;
    cr_assert(home_dir_is_loaded(dir));
    home_dir_drop(shuntd.home, dir);
    cr_assert_null(home_dir_find(shuntd.home, one));
    cr_assert_eq(home_dir_count(shuntd.home), 0);
}

Test(home, many_directories)
{
    for (uint64_t i = 1; i <= 50000; i++)
        home_add((struct dirid){i, i * 1000}, "d");
    cr_assert_eq(home_dir_count(shuntd.home), 50000);
    for (uint64_t i = 1; i <= 50000; i += 2)
        home_dir_drop(shuntd.home, home_dir_find(shuntd.home, (struct dirid){i, i * 1000}));
    for (uint64_t i = 1; i <= 50000; i++)
        cr_assert_eq(home_dir_find(shuntd.home, (struct dirid){i, i * 1000}) != NULL, i % 2 == 0);
}

Test(home, a_renamed_directory_takes_along_what_is_beneath)
{
    struct home_dir *self = home_add(one, "a/b"), *below = home_add(two, "a/b/c/d"), *alike = home_add(three, "a/bc");
    home_dirs_moved(shuntd.home, "a/b", "x");
    cr_assert_str_eq(self->path, "x");
    cr_assert_str_eq(below->path, "x/c/d");
    cr_assert_str_eq(alike->path, "a/bc");
}

Test(home, a_touched_directory_is_written_down_and_waits_to_be_quiet)
{
    struct home_dir *dir = home_add(one, "out");
    struct record_dir record;
    dir->record.flags = RECORD_LOADED; /* this node's processes use it */
    cr_assert_not(home_has_unwritten(shuntd.home));
    cr_assert_eq(home_dir_note_change(shuntd.home, dir, clock_files()), 0);
    cr_assert(home_has_unwritten(shuntd.home));
    cr_assert_eq(index_get_dir(shuntd.index, one, &record), 0);
    cr_assert_eq(record.changed, dir->record.changed);
    cr_assert_gt(record.changed, 0);
    cr_assert_null(home_dir_next_to_write(shuntd.home, dir->changed_at - 1), "not quiet yet");
    cr_assert_eq(home_dir_next_to_write(shuntd.home, dir->changed_at), dir);
    dir->writing = true;
    cr_assert_null(home_dir_next_to_write(shuntd.home, dir->changed_at), "a job is under way");
    home_dir_forget_times(dir);
    home_dir_drop(shuntd.home, dir);
    dir->record.flags = RECORD_LOADED; /* this node's processes use it */
    cr_assert_not(home_has_unwritten(shuntd.home));
}

/* A directory that is touched all the time must not keep one that is quiet from being given its times. */
Test(home, the_longest_quiet_comes_first)
{
    struct home_dir *first = home_add(one, "a"), *second = home_add(two, "b");
    cr_assert_eq(home_dir_note_change(shuntd.home, first, clock_files()), 0);
    cr_assert_eq(home_dir_note_change(shuntd.home, second, clock_files()), 0);
    for (uint64_t now = clock_files(); clock_files() == now;)
        usleep(1000);
    cr_assert_eq(home_dir_note_change(shuntd.home, first, clock_files()), 0);
    cr_assert_eq(home_dir_next_to_write(shuntd.home, UINT64_MAX), second);
}

/* Word of times. */

Test(home, word_that_is_told_first_waits_longest)
{
    struct home_dir *first = home_add(one, "a"), *second = home_add(two, "b");
    cr_assert_eq(home_times_due(shuntd.home, 10, 20), UINT64_MAX, "nothing to wake up for");
    cr_assert_eq(home_dir_note_change(shuntd.home, first, clock_files()), 0);
    cr_assert_eq(home_dir_note_change(shuntd.home, second, clock_files()), 0);
    uint64_t since = first->unannounced_since;
    for (uint64_t now = clock_files(); clock_files() == now;)
        usleep(1000);
    cr_assert_eq(home_dir_note_change(shuntd.home, first, clock_files()), 0);
    cr_assert_eq(first->unannounced_since, since, "or it would never be told");
    cr_assert_eq(home_times_due(shuntd.home, 10, CLOCK_SECOND), since + 10);
    cr_assert_null(home_dir_next_to_announce(shuntd.home, since - 1));
    cr_assert_eq(home_dir_next_to_announce(shuntd.home, since), first);
    cr_assert_eq(home_dir_next_to_announce(shuntd.home, UINT64_MAX), second);
    cr_assert_null(home_dir_next_to_announce(shuntd.home, UINT64_MAX), "once");
    cr_assert_eq(home_times_due(shuntd.home, 10, CLOCK_SECOND), second->changed_at + CLOCK_SECOND);
}

/* In whatever order it comes. */
Test(home, of_two_words_the_later_counts)
{
    const struct home_times words[] = {
        {.round = 1, .changed = 9},
        {.round = 2, .changed = 5, .settled = 3, .stood = 2},
        {.round = 2, .changed = 6},
        {.round = 2, .changed = 6, .written = true, .settled = 8, .stood = 6},
        {.round = 2, .changed = 4, .written = true, .settled = 5, .stood = 4},
    };
    const unsigned count = sizeof words / sizeof *words;
    for (unsigned first = 0; first < count; first++)
        for (unsigned step = 1; step < count; step++) {
            struct home_times times = {.round = 0};
            for (unsigned i = 0, at = first; i < count; i++, at = (at + step) % count)
                home_times_merge(&times, &words[at]);
            cr_assert(home_times_equal(&times, &words[3]), "from %u by %u", first, step);
            cr_assert_not(home_times_merge(&times, &words[first]), "that is no news");
        }
}

Test(home, times_that_were_set_are_after_every_change_before)
{
    struct home_dir *dir = home_add(one, "out");
    const struct home_times again = {.round = 7};
    cr_assert_eq(home_dir_note_change(shuntd.home, dir, clock_files()), 0);
    const struct home_times before = dir->times;
    cr_assert_eq(home_dir_merge_times(shuntd.home, dir, &again, 0), 0);
    cr_assert_not(home_has_unwritten(shuntd.home));
    cr_assert_eq(home_dir_merge_times(shuntd.home, dir, &before, 3), 0);
    cr_assert_eq(dir->record.changed, 0, "an older word");
    cr_assert_eq(home_dir_note_change(shuntd.home, dir, clock_files()), 0);
    cr_assert(dir->times.round == 7 && dir->record.changed >= before.changed);
}

Test(home, who_changed_it_too_writes_what_it_heard_if_nobody_does)
{
    struct home_dir *dir = home_add(one, "out"), *other = home_add(two, "in");
    cr_assert_eq(home_dir_note_change(shuntd.home, dir, clock_files()), 0);
    cr_assert_eq(home_dir_note_change(shuntd.home, other, clock_files()), 0);
    uint64_t changed_at = dir->changed_at;
    shuntd.now++;
    struct home_times word = {.changed = dir->times.changed + 5};
    cr_assert_eq(home_dir_merge_times(shuntd.home, dir, &word, 3), 0);
    cr_assert_gt(dir->changed_at, changed_at + HOME_TIMES_PATIENCE);
    cr_assert_eq(home_dir_next_to_write(shuntd.home, UINT64_MAX), other, "it waits again");
    word.written = true;
    cr_assert_eq(home_dir_merge_times(shuntd.home, dir, &word, 3), 0);
    word.changed = UINT64_MAX;
    cr_assert_eq(home_dir_merge_times(shuntd.home, other, &word, 3), 0);
    cr_assert_not(home_has_unwritten(shuntd.home), "somebody did");
}

Test(home, who_only_hears_of_a_change_writes_nothing)
{
    struct home_dir *dir = home_add(one, "out");
    const struct home_times word = {.changed = 5};
    cr_assert_eq(home_dir_merge_times(shuntd.home, dir, &word, 3), 0);
    cr_assert(dir->record.changed == 5 && !home_has_unwritten(shuntd.home));
}

Test(home, what_another_node_may_have_seen_is_not_taken_back)
{
    struct home_dir *dir = home_add(one, "out");
    struct operation *quick = home_begin(OPERATION_CREATE, dir, "a", 100);
    cr_assert_eq(operation_note_change(shuntd.home, quick), 0);
    cr_assert_eq(operation_undo_change(shuntd.home, quick), 0);
    cr_assert(dir->times.changed == 0 && !home_has_unwritten(shuntd.home));
    cr_assert_eq(operation_note_change(shuntd.home, quick), 0);
    uint64_t changed = dir->announced = dir->times.changed;
    cr_assert_eq(operation_undo_change(shuntd.home, quick), 0);
    cr_assert_eq(dir->times.changed, changed);
}

Test(home, a_name_has_one_operation)
{
    struct home_dir *dir = home_add(one, "out"), *other = home_add(two, "in");
    struct operation *operation = home_begin(OPERATION_CREATE, dir, "a", 100);
    home_begin(OPERATION_CREATE, other, "a", 100);
    home_begin(OPERATION_UNLINK, dir, "ab", 101);
    cr_assert_eq(operation_count(shuntd.home), 3);
    cr_assert_eq(dir->operations, 2);
    cr_assert_eq(operation_find(shuntd.home, one, "a", 1), operation);
    cr_assert_eq(operation_find(shuntd.home, one, "ab", 2)->kind, OPERATION_UNLINK);
    cr_assert_null(operation_find(shuntd.home, one, "b", 1));
    cr_assert_null(operation_find(shuntd.home, three, "a", 1));
    cr_assert_eq(operation_find_own(shuntd.home, one, "a", 1, 100), operation);
    cr_assert_null(operation_find_own(shuntd.home, one, "a", 1, 101), "somebody else's");
    cr_assert(operation->client == 100 && operation->qp == 7 && operation->tag == 3);
    operation_end(shuntd.home, operation);
    cr_assert_null(operation_find(shuntd.home, one, "a", 1));
    cr_assert_not_null(operation_find(shuntd.home, two, "a", 1));
    cr_assert_eq(operation_count(shuntd.home), 2);
}

Test(home, the_operations_of_a_client)
{
    struct home_dir *dir = home_add(one, "out");
    struct operation *first = home_begin(OPERATION_CREATE, dir, "a", 100);
    home_begin(OPERATION_CREATE, dir, "b", 101);
    struct operation *last = home_begin(OPERATION_CREATE, dir, "c", 100);
    cr_assert_eq(operation_next_of_client(shuntd.home, 100), first, "the oldest first");
    operation_end(shuntd.home, first);
    cr_assert_eq(operation_next_of_client(shuntd.home, 100), last);
    operation_end(shuntd.home, last);
    cr_assert_null(operation_next_of_client(shuntd.home, 100));
    cr_assert_null(operation_next_of_client(shuntd.home, 0), "nobody has given up");
}

Test(home, who_waits_is_served_in_order)
{
    struct home_dir *dir = home_add(one, "out");
    struct operation *operation = home_begin(OPERATION_CREATE, dir, "a", 100);
    shuntd.now = 1000;
    test_home_block(&operation->blocked, 101, 11, "a");
    shuntd.now = 1300;
    test_home_block(&operation->blocked, 102, 12, "a");
    cr_assert_eq(next_woken(), 0, "not yet");
    shuntd.now = 1700;
    operation_end(shuntd.home, operation);
    cr_assert_eq(next_woken(), 11);
    cr_assert_eq(next_woken(), 12);
    cr_assert_eq(next_woken(), 0);
    cr_assert_eq(shuntd.counts.blocked, 2);
    cr_assert_eq(shuntd.counts.waited, 700 + 400);
}

Test(home, a_blocked_request_is_whole)
{
    struct home_dir *dir = home_add(one, "out");
    test_home_block(&dir->blocked, 101, 11, "ckpt.0017");
    home_wake(shuntd.home, &dir->blocked);
    struct blocked_request *blocked = home_next_retry(shuntd.home);
    struct listen_request whole, *request = &whole;
    home_restore_request(blocked, request);
    cr_assert(request->client == 101 && request->qp == 7 && request->message.tag == 11);
    cr_assert_eq(memcmp(request->message.name.text, "ckpt.0017", 9), 0);
    cr_assert_eq(memcmp(request->message.rename.to_name.text, "other", 5), 0);
    const uint8_t *name = (const uint8_t *)request->message.name.text;
    cr_assert(name > request->bytes && name < request->bytes + sizeof request->bytes, "into its own copy");
    free(blocked);
}

Test(home, who_waits_for_what_is_under_way_is_served_when_it_ends)
{
    struct home_dir *dir = home_add(one, "out");
    test_home_block(&dir->blocked, 101, 11, "x");
    dir->disk_jobs = 1;
    operation_end(shuntd.home, home_begin(OPERATION_CREATE, dir, "a", 100));
    cr_assert_eq(next_woken(), 0);
    cr_assert_eq(home_dir_wake(shuntd.home, dir), 0);
    cr_assert_eq(next_woken(), 11);
}

Test(home, a_directory_that_is_gone_stays_until_its_last_operation)
{
    struct home_dir *dir = home_add(one, "out");
    dir->complete = true;
    struct operation *operation = home_begin(OPERATION_CREATE, dir, "a", 100);
    test_home_block(&dir->blocked, 101, 11, "x");
    home_dir_drop(shuntd.home, dir);
    cr_assert_eq(next_woken(), 11);
    cr_assert_eq(home_dir_find(shuntd.home, one), dir);
    operation_end(shuntd.home, operation);
    cr_assert_null(home_dir_find(shuntd.home, one));
}

Test(home, destroy_frees_what_is_under_way)
{
    struct home_dir *dir = home_add(one, "out");
    struct operation *operation = home_begin(OPERATION_CREATE, dir, "a", 100);
    test_home_block(&operation->blocked, 101, 11, "a");
    test_home_block(&dir->blocked, 101, 12, "b");
    home_leaf_add(&dir->leaves, 3, 1);
    struct home_dir *gone = home_add(two, "in");
    test_home_block(&gone->blocked, 101, 13, "c");
    home_dir_drop(shuntd.home, gone);
    home_destroy(shuntd.home);
    shuntd.home = NULL;
    home_destroy(NULL);
}

/* Leaves. */

static int home_pick(struct home_leaves *share, uint64_t hash, uint64_t stream, uint32_t *leaf)
{
    uint32_t fresh = UINT32_MAX;
    int code = home_leaf_pick(share, hash, stream, 3, leaf, &fresh);
    cr_assert(code == 0 || (code == -EAGAIN && fresh == share->count), "%d, fresh %u", code, fresh);
    return code;
}

Test(home, a_leaf_is_used_until_it_is_full)
{
    struct home_leaves *share = &home_add(one, "out")->leaves;
    uint32_t leaf;
    cr_assert_eq(home_pick(share, 1, 100, &leaf), -EAGAIN, "none yet");
    cr_assert_eq(home_leaf_open(share, 0, 3), 0);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(home_pick(share, (uint64_t)i << 32, 100, &leaf), 0);
        cr_assert_eq(leaf, 0);
        cr_assert_eq(home_leaf_add(share, leaf, 1), 0);
    }
    cr_assert_eq(home_pick(share, 1, 100, &leaf), -EAGAIN, "full");
    cr_assert_eq(home_leaf_open(share, 1, 3), 0);
    cr_assert_eq(share->open_count, 1, "in the place of the full one");
    cr_assert_eq(home_pick(share, 1, 100, &leaf), 0);
    cr_assert_eq(leaf, 1);
}

Test(home, leaves_are_counted)
{
    struct home_leaves *share = &home_add(one, "out")->leaves;
    cr_assert_eq(home_leaf_add(share, 5, 2), 0);
    cr_assert_eq(share->count, 6);
    cr_assert_eq(share->name_counts[5], 2);
    cr_assert_eq(share->name_counts[0], 0);
    cr_assert_eq(home_leaf_add(share, 5, -1), 0);
    cr_assert_eq(share->name_counts[5], 1);
    cr_assert_eq(home_leaf_add(share, 4, -1), 0);
    cr_assert_eq(share->name_counts[4], 0, "never below zero");
    home_leaves_forget(share);
    cr_assert_eq(share->count, 0);
    cr_assert_eq(share->open_count, 0);
}

/* Puts a name into the open leaf, a fresh one if it must be: which leaf. */
static uint32_t make_in(struct home_leaves *share)
{
    uint32_t leaf, fresh;
    if (home_leaf_pick(share, 0, 100, 50000, &leaf, &fresh) != 0) {
        cr_assert_eq(home_leaf_open(share, fresh, 50000), 0);
        leaf = fresh;
    }
    cr_assert_eq(home_leaf_add(share, leaf, 1), 0);
    return leaf;
}

/* Names that a leaf takes which another node looks into at once. */
static uint32_t taken_by_looked(struct home_leaves *share, uint32_t leaf)
{
    uint32_t taken = 0;
    home_leaf_note_visit(share, leaf);
    while (make_in(share) == leaf)
        taken++;
    return taken;
}

Test(home, a_leaf_that_another_node_looks_into_is_left)
{
    struct home_leaves *share = &home_add(one, "out")->leaves;
    for (uint32_t i = 0; i < 100; i++)
        cr_assert_eq(make_in(share), 0);
    home_leaf_note_visit(share, 7);
    cr_assert_eq(make_in(share), 0, "that was not this one");
    home_leaf_note_visit(share, 0);
    for (uint32_t i = 0; i < 100; i++)
        cr_assert_eq(make_in(share), 1, "nobody looks at that one: %u", i);
    cr_assert_eq(share->open_count, 1);
}

Test(home, a_leaf_that_is_left_holds_more_the_more_there_are)
{
    struct home_leaves *share = &home_add(one, "out")->leaves;
    cr_assert_eq(make_in(share), 0);
    for (uint32_t leaf = 0; leaf < 15; leaf++) /* its first name was asked for with the one before */
        cr_assert_eq(taken_by_looked(share, leaf), 15, "leaf %u", leaf);
    for (uint32_t leaf = 15; leaf < 31; leaf++)
        cr_assert_eq(taken_by_looked(share, leaf), 31, "leaf %u", leaf);
    cr_assert_eq(taken_by_looked(share, 31), 63);
}

/* Creates by turns until no more leaves are asked for; how many are open then. */
static uint32_t leaves_for(struct home_leaves *share, unsigned streams)
{
    uint32_t leaf, fresh;
    for (unsigned i = 0; i < 2000; i++)
        if (home_leaf_pick(share, (uint64_t)i << 32, 100 + (pid_t)(i % streams), 50000, &leaf, &fresh) == -EAGAIN)
            cr_assert_eq(home_leaf_open(share, fresh, 50000), 0);
    return share->open_count;
}

Test(home, several_streams_get_several_leaves)
{
    cr_assert_eq(leaves_for(&home_add(one, "a")->leaves, 1), 1);
    cr_assert_eq(leaves_for(&home_add(two, "b")->leaves, 2), HOME_OPEN_LEAVES);
}
