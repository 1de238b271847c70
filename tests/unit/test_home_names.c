/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The home of names: who may have one, who waits, what is handed over. */
#include "home/home.h"

#include <dirent.h>

#include "base/clock.h"
#include "home_fixture.h"
#include "place.h"
#include "shuntd.h"

static const struct dirid out = {1, 10};
static struct shuntd shuntd;
static uint16_t branches[16] = {[2] = 7, [3] = 8};
static struct home_dir *dir;

static void rooms_init(void)
{
    const struct index_stamp stamp = {.session = 1, .root = {9, 9}};
    place_init();
    memset(&shuntd, 0, sizeof shuntd);
    shuntd.me.number = 1;
    shuntd.branch = 6;
    shuntd.branch_of = branches;
    cr_assert_eq(index_create(&shuntd.index, place, 16u << 20, &stamp), 0);
    home_fixture_create(&shuntd);
    dir = home_dir_add(shuntd.home, out, "out");
    dir->complete = true;
}

static void rooms_finish(void)
{
    home_destroy(shuntd.home);
    index_destroy(shuntd.index);
    place_finish();
}

TestSuite(home_names, .init = rooms_init, .fini = rooms_finish);

static struct name_question home_names_question(enum name_op op, uint16_t member, uint64_t id, const char *name)
{
    return (struct name_question){.op = (uint16_t)op,
                                  .member = member,
                                  .branch = shuntd_branch(&shuntd, member),
                                  .id = id,
                                  .dir = out,
                                  .name = name,
                                  .length = strlen(name)};
}

static const struct record_entry file = {.type = DT_REG, .state = RECORD_LIVE, .branch = 7, .leaf = 3, .ino = 55};

/* The result, or -1: it waits. */
static int home_names_ask(struct name_question q, struct name_answer *answer)
{
    struct name_answer unused;
    answer = answer != NULL ? answer : &unused;
    int code = home_ask(shuntd.home, &q, answer);
    cr_assert(code == 0 || code == HOME_WAITS);
    return code == 0 ? answer->result : -1;
}

static int home_names_reserve(uint16_t member, uint64_t id, const char *name)
{
    struct name_question q = home_names_question(NAME_RESERVE, member, id, name);
    q.entry = (struct record_entry){.type = DT_REG, .state = RECORD_PENDING, .branch = 7, .leaf = 3};
    return home_names_ask(q, NULL);
}

/* The next news is that somebody waits for that operation. */
static bool is_awaited(uint16_t member, uint64_t operation)
{
    struct home_notification notifications;
    return home_next_notification(shuntd.home, &notifications) && notifications.kind == NOTIFY_AWAITED &&
           notifications.member == member && notifications.operation == operation;
}

static int home_names_hold(uint16_t member, uint64_t id, const char *name, uint16_t flags, uint8_t state)
{
    struct name_question q = home_names_question(NAME_CLAIM, member, id, name);
    q.flags = flags;
    q.entry.state = state;
    return home_names_ask(q, NULL);
}

static void home_names_end(uint16_t member, uint64_t id, const char *name, const struct record_entry *entry)
{
    struct name_question q = home_names_question(NAME_RELEASE, member, id, name);
    if (entry != NULL)
        q.entry = *entry;
    home_names_ask(q, NULL);
}

static int home_names_lookup(uint16_t member, const char *name)
{
    return home_names_ask(home_names_question(NAME_LOOKUP, member, 99, name), NULL);
}

static int home_names_peek(uint16_t member, const char *name, struct name_answer *answer)
{
    struct name_question q = home_names_question(NAME_LOOKUP, member, 99, name);
    q.flags = NAME_PEEK;
    return home_names_ask(q, answer);
}

/* Of the next question that waited: its id, and the result it has now; 0: none has. */
static uint64_t home_names_next(int *result)
{
    struct name_question q;
    struct name_answer answer;
    int got = home_next_question(shuntd.home, &q, &answer);
    cr_assert_geq(got, 0);
    *result = got == 1 ? answer.result : 0;
    return got == 1 ? q.id : 0;
}

static int state_of(const char *name)
{
    struct record_entry entry;
    return index_get_entry(shuntd.index, out, name, strlen(name), &entry) == 0 ? entry.state : 0;
}

Test(home_names, a_name_is_reserved_made_and_found)
{
    struct name_answer answer;
    cr_assert_eq(home_names_lookup(2, "a"), MESSAGE_ABSENT);
    cr_assert_eq(home_names_reserve(2, 1, "a"), 0);
    cr_assert_eq(state_of("a"), RECORD_PENDING);
    home_names_end(2, 1, "a", &file);
    cr_assert_eq(home_names_ask(home_names_question(NAME_LOOKUP, 2, 2, "a"), &answer), MESSAGE_EXISTS);
    cr_assert(record_same(&answer.entry, &file));
    cr_assert_eq(home_names_reserve(3, 1, "a"), MESSAGE_EXISTS);
    cr_assert_eq(home_claim_count(shuntd.home), 0);
}

Test(home_names, one_has_it_and_the_others_wait)
{
    int result;
    cr_assert_eq(home_names_reserve(2, 1, "a"), 0);
    cr_assert_eq(home_names_reserve(3, 7, "a"), -1);
    cr_assert_eq(home_names_lookup(2, "a"), -1, "also for requests from the same node");
    cr_assert_eq(home_names_next(&result), 0);
    home_names_end(2, 1, "a", NULL);
    cr_assert(home_names_next(&result) == 7 && result == 0, "the claim is that member's now");
    cr_assert_eq(home_names_next(&result), 0, "and the lookup waits for it");
    home_names_end(3, 7, "a", &file);
    cr_assert(home_names_next(&result) == 99 && result == MESSAGE_EXISTS);
}

Test(home_names, only_who_has_it_may_end_it)
{
    cr_assert_eq(home_names_reserve(2, 1, "a"), 0);
    home_names_end(2, 2, "a", NULL);
    home_names_end(3, 1, "a", NULL);
    cr_assert_eq(state_of("a"), RECORD_PENDING);
    cr_assert_eq(home_claim_count(shuntd.home), 1);
}

Test(home_names, a_hold_says_what_was_there_and_what_readers_meet)
{
    index_put_entry(shuntd.index, out, "a", 1, &file);
    cr_assert_eq(home_names_hold(2, 1, "a", 0, RECORD_DYING), MESSAGE_EXISTS);
    cr_assert_eq(state_of("a"), RECORD_DYING);
    cr_assert_eq(home_names_hold(3, 1, "a", NAME_NONBLOCK, RECORD_DYING), MESSAGE_BUSY);
    struct name_question mark = home_names_question(NAME_MARK, 2, 1, "a");
    mark.entry = file;
    mark.entry.state = RECORD_PENDING;
    cr_assert_eq(home_names_ask(mark, NULL), 0);
    cr_assert_eq(state_of("a"), RECORD_PENDING);
    home_names_end(2, 1, "a", NULL);
    cr_assert_eq(state_of("a"), 0);
    cr_assert_eq(home_names_hold(2, 2, "a", 0, 0), MESSAGE_ABSENT);
    cr_assert_eq(home_claim_count(shuntd.home), 0, "nothing is held that is not there");
    cr_assert_eq(home_names_hold(2, 3, "a", NAME_EVEN_ABSENT, 0), MESSAGE_ABSENT);
    cr_assert_eq(home_claim_count(shuntd.home), 1, "but if that was asked for");
}

/* What a rename asks of the home of its new name. */
Test(home_names, a_hold_of_what_is_absent_may_make_it_pending)
{
    struct name_answer answer;
    struct name_question claim = home_names_question(NAME_CLAIM, 2, 1, "a");
    claim.flags = NAME_EVEN_ABSENT | NAME_NONBLOCK;
    claim.entry = (struct record_entry){.type = DT_REG, .state = RECORD_PENDING, .branch = 7, .leaf = 3};
    cr_assert_eq(home_names_ask(claim, &answer), MESSAGE_ABSENT);
    cr_assert(answer.entry.state == RECORD_PENDING && answer.entry.branch == 7 && state_of("a") == RECORD_PENDING);
    cr_assert_eq(home_names_lookup(3, "a"), -1);
    home_names_end(2, 1, "a", NULL);
    cr_assert_eq(state_of("a"), 0);
    index_put_entry(shuntd.index, out, "a", 1, &file);
    cr_assert_eq(home_names_ask(claim, &answer), MESSAGE_EXISTS);
    cr_assert(record_same(&answer.entry, &file) && answer.entry.state == RECORD_LIVE, "as it was");
    cr_assert_eq(state_of("a"), RECORD_PENDING);
}

Test(home_names, what_does_not_wait_does_not_wait_for_a_thaw_either)
{
    dir->frozen = true;
    cr_assert_eq(home_names_hold(2, 1, "a", NAME_EVEN_ABSENT | NAME_NONBLOCK, 0), MESSAGE_BUSY);
    cr_assert_eq(home_names_hold(2, 2, "a", NAME_EVEN_ABSENT, 0), -1);
}

Test(home_names, a_peek_does_not_wait_for_who_makes_a_new_name)
{
    struct name_answer answer;
    cr_assert_eq(home_names_peek(2, "a", &answer), MESSAGE_ABSENT);
    cr_assert_eq(home_names_reserve(2, 1, "a"), 0);
    cr_assert_eq(home_names_peek(2, "a", &answer), MESSAGE_EXISTS);
    cr_assert(answer.entry.state == RECORD_PENDING && answer.entry.branch == 7 && answer.entry.leaf == 3);
    dir->frozen = true;
    cr_assert_eq(home_names_peek(2, "a", &answer), -1);
}

Test(home_names, a_peek_is_a_look_at_the_file_where_it_is_pending_alone)
{
    struct name_answer answer;
    struct home_notification notification;
    index_put_entry(shuntd.index, out, "b", 1, &file);
    cr_assert_eq(home_names_peek(3, "b", &answer), MESSAGE_EXISTS);
    cr_assert_not(home_next_notification(shuntd.home, &notification), "a listing has what it wants");
    cr_assert_eq(home_names_reserve(2, 1, "a"), 0);
    cr_assert_eq(home_names_peek(3, "a", &answer), MESSAGE_EXISTS);
    cr_assert(home_next_notification(shuntd.home, &notification) && notification.kind == NOTIFY_LEAF_VISITED);
}

Test(home_names, a_peek_waits_where_no_look_would_tell)
{
    struct name_answer answer;
    index_put_entry(shuntd.index, out, "a", 1, &file);
    index_put_entry(shuntd.index, out, "b", 1, &file);
    cr_assert_eq(home_names_hold(2, 1, "a", 0, RECORD_DYING), MESSAGE_EXISTS);
    cr_assert_eq(home_names_peek(3, "a", &answer), -1, "it goes, and may be renamed");
    cr_assert_eq(home_names_hold(2, 2, "b", 0, RECORD_PENDING), MESSAGE_EXISTS);
    cr_assert_eq(home_names_peek(3, "b", &answer), -1, "it is replaced");
    cr_assert_eq(home_names_hold(2, 3, "c", NAME_EVEN_ABSENT, 0), MESSAGE_ABSENT);
    cr_assert_eq(home_names_peek(3, "c", &answer), -1, "it is not known what it will be");
}

Test(home_names, nothing_is_said_of_a_directory_that_is_not_complete)
{
    dir->complete = false;
    cr_assert_eq(home_names_lookup(2, "a"), MESSAGE_NOT_LOADED);
    cr_assert_eq(home_names_reserve(2, 1, "a"), MESSAGE_NOT_LOADED);
}

Test(home_names, what_was_made_is_taken_although_nobody_here_knew)
{
    dir->complete = false; /* the daemon that was its home has died */
    home_names_end(2, 1, "a", &file);
    cr_assert_eq(state_of("a"), RECORD_LIVE);
    home_names_end(2, 1, "a", NULL);
    cr_assert_eq(state_of("a"), RECORD_LIVE, "the unlink of another file says nothing of this one");
}

Test(home_names, a_freeze_needs_an_empty_directory_at_rest)
{
    struct home_notification notifications;
    int result;
    cr_assert_eq(home_names_reserve(2, 1, "a"), 0);
    cr_assert_eq(home_freeze(shuntd.home, dir, 0), MESSAGE_BUSY);
    cr_assert(is_awaited(2, 1));
    cr_assert_not(home_next_notification(shuntd.home, &notifications));
    home_names_end(2, 1, "a", &file);
    cr_assert(home_next_notification(shuntd.home, &notifications) && notifications.kind == NOTIFY_IDLE &&
              dirid_equal(notifications.dir, out));
    cr_assert_not(home_next_notification(shuntd.home, &notifications), "once");
    cr_assert_eq(home_freeze(shuntd.home, dir, 0), MESSAGE_NOT_EMPTY);
    cr_assert_eq(home_names_reserve(2, 2, "b"), 0, "it was not sealed");
    home_names_end(2, 2, "b", NULL);
    index_del_entry(shuntd.index, out, "a", 1);
    cr_assert_eq(home_freeze(shuntd.home, dir, 0), 0);
    cr_assert_eq(home_names_reserve(2, 3, "c"), -1);
    home_thaw(shuntd.home, dir);
    cr_assert(home_names_next(&result) == 3 && result == MESSAGE_REMOTE, "it begins again: its leaf may be gone");
    cr_assert_eq(home_claim_count(shuntd.home), 0);
}

Test(home_names, idle_is_told_only_while_it_is_so)
{
    struct home_notification notifications;
    cr_assert_eq(home_names_reserve(2, 1, "a"), 0);
    cr_assert_eq(home_freeze(shuntd.home, dir, 0), MESSAGE_BUSY);
    cr_assert(is_awaited(2, 1));
    home_names_end(2, 1, "a", NULL);
    cr_assert_eq(home_names_reserve(2, 2, "a"), 0, "a request that was sent back starts again at once");
    cr_assert(is_awaited(2, 2));
    cr_assert_not(home_next_notification(shuntd.home, &notifications));
    home_names_end(2, 2, "a", NULL);
    cr_assert(home_next_notification(shuntd.home, &notifications) && notifications.kind == NOTIFY_IDLE &&
              dirid_equal(notifications.dir, out));
    cr_assert_not(home_next_notification(shuntd.home, &notifications), "once");
}

Test(home_names, what_was_there_since_a_freeze_was_tried_first_is_told)
{
    cr_assert_eq(home_names_reserve(2, 1, "a"), 0);
    cr_assert_eq(home_freeze(shuntd.home, dir, CLOCK_SECOND), MESSAGE_BUSY, "it may never be made");
    home_names_end(2, 1, "a", &file);
    shuntd.now = clock_monotonic();
    cr_assert_eq(home_names_hold(2, 2, "a", 0, RECORD_DYING), MESSAGE_EXISTS);
    cr_assert_eq(home_freeze(shuntd.home, dir, 0), MESSAGE_BUSY, "it may be gone by now, and since long");
    cr_assert_eq(home_freeze(shuntd.home, dir, CLOCK_SECOND), MESSAGE_NOT_EMPTY);
    home_names_end(2, 2, "a", NULL);
    cr_assert_eq(home_freeze(shuntd.home, dir, CLOCK_SECOND), 0);
}

Test(home_names, who_holds_a_name_hears_once_that_somebody_waits)
{
    struct home_notification notifications;
    int result;
    cr_assert_eq(home_names_reserve(2, 1, "a"), 0);
    cr_assert_not(home_next_notification(shuntd.home, &notifications), "nobody waits");
    cr_assert_eq(home_names_lookup(3, "a"), -1);
    cr_assert(is_awaited(2, 1));
    cr_assert_eq(home_names_lookup(1, "a"), -1);
    cr_assert_not(home_next_notification(shuntd.home, &notifications), "the claimant knows");
    home_names_end(2, 1, "a", NULL);
    while (home_names_next(&result) != 0)
        cr_assert_eq(result, MESSAGE_ABSENT);
    cr_assert_eq(home_names_reserve(3, 4, "b"), 0);
    cr_assert_eq(home_report_idle(shuntd.home, dir), 0);
    cr_assert(is_awaited(3, 4));
    cr_assert_eq(home_names_reserve(2, 5, "c"), 0);
    cr_assert(is_awaited(2, 5), "also an operation that begins while a directory is to be removed");
}

static int reserve_prefetch(uint16_t member, uint64_t id, const char *name)
{
    struct name_question q = home_names_question(NAME_RESERVE, member, id, name);
    q.flags = NAME_PREFETCH;
    q.entry = (struct record_entry){.type = DT_REG, .state = RECORD_PENDING, .branch = 7, .leaf = 3};
    return home_names_ask(q, NULL);
}

static bool is_notifications(void)
{
    struct home_notification notifications;
    return home_next_notification(shuntd.home, &notifications);
}

Test(home_names, what_is_asked_for_prefetch_waits_for_nobody)
{
    cr_assert_eq(reserve_prefetch(2, 1, "a"), 0);
    cr_assert_eq(reserve_prefetch(3, 1, "a"), MESSAGE_BUSY);
    cr_assert_eq(home_names_hold(3, 2, "a", NAME_PREFETCH, RECORD_DYING), MESSAGE_BUSY);
    cr_assert_not(is_notifications(), "nothing is taken from any node");
    cr_assert_eq(home_names_reserve(3, 3, "a"), -1);
    cr_assert(is_awaited(2, 1));
    home_names_end(2, 1, "a", NULL);
    struct name_question waited;
    struct name_answer answer;
    cr_assert_eq(home_next_question(shuntd.home, &waited, &answer), 1);
    cr_assert(waited.member == 3 && waited.id == 3 && answer.result == 0);
    home_names_end(3, 3, "a", &file);
    cr_assert_eq(home_names_hold(3, 4, "a", NAME_PREFETCH, RECORD_DYING), MESSAGE_EXISTS);
    cr_assert_not(is_notifications(), "nor does it look into any node's leaf");
    home_names_end(3, 4, "a", &file);
    cr_assert_eq(home_names_hold(3, 5, "a", 0, 0), MESSAGE_EXISTS);
    cr_assert(is_notifications());
}

Test(home_names, a_listing_waits_for_what_nobody_has_asked_for)
{
    struct link listing;
    list_init(&listing);
    cr_assert_eq(home_drain_prefetched(shuntd.home, dir), 0);
    cr_assert_eq(home_names_reserve(2, 1, "made"), 0);
    cr_assert_eq(home_drain_prefetched(shuntd.home, dir), 0, "nobody waits for a process");
    cr_assert_eq(reserve_prefetch(2, 2, "claimed"), 0);
    cr_assert_eq(reserve_prefetch(3, 3, "free"), 0);
    cr_assert_eq(home_drain_prefetched(shuntd.home, dir), 1);
    list_append(&dir->blocked_collectives, &listing);
    cr_assert(is_notifications() && is_notifications() && !is_notifications(), "both hear of it");
    cr_assert_eq(reserve_prefetch(3, 4, "more"), MESSAGE_BUSY);
    cr_assert_eq(home_names_reserve(3, 5, "asked for"), 0);
    home_names_ask(home_names_question(NAME_REQUESTED, 3, 2, "claimed"), NULL); /* it is not his */
    cr_assert_eq(dir->prefetched_claims, 2);
    home_names_ask(home_names_question(NAME_REQUESTED, 2, 2, "claimed"), NULL);
    cr_assert_null(home_next_collective(shuntd.home));
    home_names_end(3, 3, "free", NULL);
    cr_assert_eq(home_next_collective(shuntd.home), &listing);
    cr_assert(dir->prefetched_claims == 0 && dir->claims == 3);
    cr_assert_eq(reserve_prefetch(3, 6, "more"), 0, "from now on");
    home_drop_claims(shuntd.home);
    cr_assert(dir->prefetched_claims == 0 && dir->claims == 0);
}

Test(home_names, who_looks_for_a_name_that_is_not_there_has_it_given_back)
{
    home_names_reserve(2, 1, "made");
    reserve_prefetch(2, 2, "foreseen");
    home_recall_prefetched(shuntd.home, out, "made", 4);
    home_recall_prefetched(shuntd.home, out, "neither", 7);
    cr_assert_not(is_notifications());
    home_recall_prefetched(shuntd.home, out, "foreseen", 8);
    cr_assert(is_awaited(2, 2) && !is_notifications());
}

Test(home_names, an_owner_hears_once_who_looks_into_its_leaf)
{
    struct home_notification notifications;
    index_put_entry(shuntd.index, out, "a", 1, &file);
    home_names_lookup(2, "a");
    cr_assert_not(home_next_notification(shuntd.home, &notifications), "the asker itself");
    home_names_lookup(3, "a");
    cr_assert(home_next_notification(shuntd.home, &notifications) && notifications.kind == NOTIFY_LEAF_VISITED);
    cr_assert(notifications.branch == 7 && notifications.leaf == 3);
    home_names_lookup(3, "a");
    cr_assert_eq(home_report_visit(shuntd.home, dir, &file, 1), 0);
    cr_assert_not(home_next_notification(shuntd.home, &notifications), "the claimant knows");
}

struct handed {
    unsigned count;
    uint64_t ids;
};

static int count_handed(void *context, uint16_t to, struct dirid id, const char *name, size_t length, uint16_t member,
                        uint64_t operation)
{
    struct handed *handed = context;
    cr_assert(to == 3 && dirid_equal(id, out) && length == 1 && member == 2);
    handed->count++;
    handed->ids += operation;
    return 0;
}

Test(home_names, what_goes_to_another_home_is_held_there)
{
    uint16_t to[RECORD_SHARDS] = {0};
    struct handed handed = {0};
    int result;
    cr_assert_eq(home_names_reserve(2, 1, "a"), 0);
    cr_assert_eq(home_names_reserve(2, 2, "b"), 0);
    cr_assert_eq(home_names_lookup(3, "b"), -1);
    to[record_shard(out, record_hash("b", 1))] = 3;
    cr_assert_neq(record_shard(out, record_hash("a", 1)), record_shard(out, record_hash("b", 1)));
    cr_assert_eq(home_hand_over(shuntd.home, to, count_handed, &handed), 0);
    cr_assert(handed.count == 1 && handed.ids == 2);
    cr_assert(home_names_next(&result) == 99 && result == MESSAGE_REMOTE);
    cr_assert_eq(home_claim_count(shuntd.home), 1);
    cr_assert_eq(home_claim_for(shuntd.home, dir, "c", 1, 2, 5), 0);
    cr_assert_eq(home_names_reserve(3, 8, "c"), -1, "as if it had been reserved here");
    home_names_end(2, 5, "c", NULL);
    cr_assert(home_names_next(&result) == 8 && result == 0);
}

Test(home_names, who_waited_for_what_goes_to_another_home_asks_that_one)
{
    uint16_t to[RECORD_SHARDS] = {0};
    struct handed handed = {0};
    int result;
    cr_assert_eq(home_names_reserve(2, 1, "b"), 0);
    cr_assert_eq(home_names_reserve(3, 8, "b"), -1);
    home_names_end(2, 1, "b", NULL);
    to[record_shard(out, record_hash("b", 1))] = 3;
    cr_assert_eq(home_hand_over(shuntd.home, to, count_handed, &handed), 0);
    cr_assert(handed.count == 0 && home_names_next(&result) == 8 && result == MESSAGE_REMOTE);
    cr_assert_eq(home_claim_count(shuntd.home), 0);
}

Test(home_names, what_a_member_holds)
{
    struct name_question q;
    cr_assert_eq(home_names_reserve(2, 1, "a"), 0);
    cr_assert_eq(home_names_reserve(3, 2, "b"), 0);
    cr_assert_not(home_claim_of_member(shuntd.home, 4, &q));
    cr_assert(home_claim_of_member(shuntd.home, 3, &q));
    cr_assert(q.op == NAME_RELEASE && q.id == 2 && q.length == 1 && q.name[0] == 'b');
    home_names_ask(q, NULL);
    cr_assert_not(home_claim_of_member(shuntd.home, 3, &q));
}

/* All begins again. */

static void home_names_list(const char *name)
{
    cr_assert_eq(home_list_name(shuntd.home, dir, name, strlen(name), &file), 0);
}

Test(home_names, who_waits_is_sent_away_when_nobody_holds_anything_any_more)
{
    int result;
    cr_assert_eq(home_names_reserve(2, 1, "a"), 0);
    cr_assert_eq(home_names_lookup(3, "a"), -1);
    home_drop_claims(shuntd.home);
    cr_assert_eq(home_claim_count(shuntd.home), 0);
    cr_assert_eq(dir->claims, 0);
    cr_assert_eq(home_names_next(&result), 99);
    cr_assert_eq(result, MESSAGE_REMOTE);
}

Test(home_names, what_is_held_is_not_believed_as_it_was_listed)
{
    dir->complete = false;
    cr_assert_eq(home_claim_for(shuntd.home, dir, "held", 4, 2, 1), 0);
    home_names_list("held");
    home_names_list("other");
    cr_assert_eq(state_of("held"), 0);
    cr_assert_eq(state_of("other"), RECORD_LIVE);
    home_names_end(2, 1, "held", NULL);
    home_names_list("held");
    cr_assert_eq(state_of("held"), 0, "it may have been listed before it went");
    cr_assert(home_may_list(shuntd.home, dir, record_hash("other", 5)));
    dir->complete = true;
    home_list_end(dir);
    home_names_list("held");
    cr_assert_eq(state_of("held"), RECORD_LIVE);
}

Test(home_names, a_name_that_is_listed_in_two_places_is_noted)
{
    const struct record_entry elsewhere = {.type = DT_REG, .state = RECORD_LIVE, .branch = 1, .leaf = 3, .ino = 78};
    dir->complete = false;
    home_names_list("a");
    home_names_list("a");
    cr_assert_eq(dir->list_result, 0, "it was put for an operation, and found then");
    cr_assert_eq(home_list_name(shuntd.home, dir, "a", 1, &elsewhere), 0);
    cr_assert_eq(dir->list_result, MESSAGE_TWICE);
    cr_assert_eq(home_list_begin(shuntd.home, dir, dir->load_number + 1), 0);
    cr_assert_eq(dir->list_result, 0, "all is listed again");
    cr_assert_eq(home_list_name(shuntd.home, dir, "a", 1, &elsewhere), 0);
    cr_assert_eq(dir->list_result, 0);
}

Test(home_names, there_may_be_no_room_for_what_is_listed)
{
    char name[RECORD_NAME_MAX];
    dir->complete = false;
    for (int i = 0; i < 100000 && dir->list_result == 0; i++) {
        snprintf(name, sizeof name, "%0200d", i);
        cr_assert_eq(home_list_name(shuntd.home, dir, name, 200, &file), 0);
    }
    cr_assert_eq(dir->list_result, -ENOSPC, "which is no end of the daemon");
    cr_assert_eq(home_list_begin(shuntd.home, dir, dir->load_number + 1), 0);
    cr_assert_eq(dir->list_result, 0);
    home_names_list("a");
    cr_assert_eq(state_of("a"), RECORD_LIVE);
}

Test(home_names, what_was_made_while_its_directory_was_listed_stays)
{
    struct record_entry entry;
    const struct record_entry newer = {.type = DT_REG, .state = RECORD_LIVE, .ino = 77};
    dir->complete = false;
    cr_assert_eq(home_claim_for(shuntd.home, dir, "a", 1, 2, 1), 0);
    home_names_end(2, 1, "a", &newer);
    home_names_list("a");
    cr_assert_eq(index_get_entry(shuntd.index, out, "a", 1, &entry), 0);
    cr_assert_eq(entry.ino, 77);
}
