/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The home of names: who may have one, who waits, what is handed over. */
#include "home/home.h"

#include <dirent.h>

#include "base/clock.h"
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
    cr_assert_eq(home_create(&shuntd.home), 0);
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

static struct name_question question(enum name_op op, uint16_t member, uint64_t id, const char *name)
{
    return (struct name_question){
        .op = (uint16_t)op, .member = member, .id = id, .dir = out, .name = name, .length = strlen(name)};
}

static const struct record_entry file = {.type = DT_REG, .state = RECORD_LIVE, .branch = 7, .leaf = 3, .ino = 55};

/* The result, or -1: it waits. */
static int ask(struct name_question q, struct name_answer *answer)
{
    struct name_answer unused;
    answer = answer != NULL ? answer : &unused;
    int code = home_ask(&shuntd, &q, answer);
    cr_assert(code == 0 || code == HOME_WAITS);
    return code == 0 ? answer->result : -1;
}

static int reserve(uint16_t member, uint64_t id, const char *name)
{
    struct name_question q = question(NAME_RESERVE, member, id, name);
    q.entry = (struct record_entry){.type = DT_REG, .state = RECORD_PENDING, .branch = 7, .leaf = 3};
    return ask(q, NULL);
}

/* The next news is that somebody waits for that flight. */
static bool is_awaited(uint16_t member, uint64_t flight)
{
    struct home_news news;
    return home_next_news(shuntd.home, &news) && news.kind == NEWS_AWAITED && news.member == member && news.flight == flight;
}

static int hold(uint16_t member, uint64_t id, const char *name, uint16_t flags, uint8_t state)
{
    struct name_question q = question(NAME_HOLD, member, id, name);
    q.flags = flags;
    q.entry.state = state;
    return ask(q, NULL);
}

static void end(uint16_t member, uint64_t id, const char *name, const struct record_entry *entry)
{
    struct name_question q = question(NAME_END, member, id, name);
    if (entry != NULL)
        q.entry = *entry;
    ask(q, NULL);
}

static int lookup(uint16_t member, const char *name)
{
    return ask(question(NAME_LOOKUP, member, 99, name), NULL);
}

static int peek(uint16_t member, const char *name, struct name_answer *answer)
{
    struct name_question q = question(NAME_LOOKUP, member, 99, name);
    q.flags = NAME_PEEK;
    return ask(q, answer);
}

/* Of the next question that waited: its id, and the result it has now; 0: none has. */
static uint64_t next(int *result)
{
    struct name_question q;
    struct name_answer answer;
    int got = home_next_question(&shuntd, &q, &answer);
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
    cr_assert_eq(lookup(2, "a"), MESSAGE_ABSENT);
    cr_assert_eq(reserve(2, 1, "a"), 0);
    cr_assert_eq(state_of("a"), RECORD_PENDING);
    end(2, 1, "a", &file);
    cr_assert_eq(ask(question(NAME_LOOKUP, 2, 2, "a"), &answer), MESSAGE_EXISTS);
    cr_assert(record_same(&answer.entry, &file));
    cr_assert_eq(reserve(3, 1, "a"), MESSAGE_EXISTS);
    cr_assert_eq(home_held_count(shuntd.home), 0);
}

Test(home_names, one_has_it_and_the_others_wait)
{
    int result;
    cr_assert_eq(reserve(2, 1, "a"), 0);
    cr_assert_eq(reserve(3, 7, "a"), -1);
    cr_assert_eq(lookup(2, "a"), -1, "also for who asks from the same node");
    cr_assert_eq(next(&result), 0);
    end(2, 1, "a", NULL);
    cr_assert(next(&result) == 7 && result == 0, "it is his now");
    cr_assert_eq(next(&result), 0, "and the lookup waits for him");
    end(3, 7, "a", &file);
    cr_assert(next(&result) == 99 && result == MESSAGE_EXISTS);
}

Test(home_names, only_who_has_it_may_end_it)
{
    cr_assert_eq(reserve(2, 1, "a"), 0);
    end(2, 2, "a", NULL);
    end(3, 1, "a", NULL);
    cr_assert_eq(state_of("a"), RECORD_PENDING);
    cr_assert_eq(home_held_count(shuntd.home), 1);
}

Test(home_names, a_hold_says_what_was_there_and_what_readers_meet)
{
    index_put_entry(shuntd.index, out, "a", 1, &file);
    cr_assert_eq(hold(2, 1, "a", 0, RECORD_DYING), MESSAGE_EXISTS);
    cr_assert_eq(state_of("a"), RECORD_DYING);
    cr_assert_eq(hold(3, 1, "a", NAME_TRY, RECORD_DYING), MESSAGE_BUSY);
    struct name_question mark = question(NAME_MARK, 2, 1, "a");
    mark.entry = file;
    mark.entry.state = RECORD_PENDING;
    cr_assert_eq(ask(mark, NULL), 0);
    cr_assert_eq(state_of("a"), RECORD_PENDING);
    end(2, 1, "a", NULL);
    cr_assert_eq(state_of("a"), 0);
    cr_assert_eq(hold(2, 2, "a", 0, 0), MESSAGE_ABSENT);
    cr_assert_eq(home_held_count(shuntd.home), 0, "nothing is held that is not there");
    cr_assert_eq(hold(2, 3, "a", NAME_ANYHOW, 0), MESSAGE_ABSENT);
    cr_assert_eq(home_held_count(shuntd.home), 1, "but if that was asked for");
}

Test(home_names, a_peek_does_not_wait_for_who_makes_a_new_name)
{
    struct name_answer answer;
    cr_assert_eq(peek(2, "a", &answer), MESSAGE_ABSENT);
    cr_assert_eq(reserve(2, 1, "a"), 0);
    cr_assert_eq(peek(2, "a", &answer), MESSAGE_EXISTS);
    cr_assert(answer.entry.state == RECORD_PENDING && answer.entry.branch == 7 && answer.entry.leaf == 3);
    dir->sealed = true;
    cr_assert_eq(peek(2, "a", &answer), -1);
}

Test(home_names, a_peek_waits_where_no_look_would_tell)
{
    struct name_answer answer;
    index_put_entry(shuntd.index, out, "a", 1, &file);
    index_put_entry(shuntd.index, out, "b", 1, &file);
    cr_assert_eq(hold(2, 1, "a", 0, RECORD_DYING), MESSAGE_EXISTS);
    cr_assert_eq(peek(3, "a", &answer), -1, "it goes, and may be renamed");
    cr_assert_eq(hold(2, 2, "b", 0, RECORD_PENDING), MESSAGE_EXISTS);
    cr_assert_eq(peek(3, "b", &answer), -1, "it is replaced");
    cr_assert_eq(hold(2, 3, "c", NAME_ANYHOW, 0), MESSAGE_ABSENT);
    cr_assert_eq(peek(3, "c", &answer), -1, "it is not known what it will be");
}

Test(home_names, nothing_is_said_of_a_directory_that_is_not_complete)
{
    dir->complete = false;
    cr_assert_eq(lookup(2, "a"), MESSAGE_NOT_LOADED);
    cr_assert_eq(reserve(2, 1, "a"), MESSAGE_NOT_LOADED);
}

Test(home_names, what_was_made_is_taken_although_nobody_here_knew)
{
    dir->complete = false; /* the daemon that was its home has died */
    end(2, 1, "a", &file);
    cr_assert_eq(state_of("a"), RECORD_LIVE);
    end(2, 1, "a", NULL);
    cr_assert_eq(state_of("a"), RECORD_LIVE, "who removed another file says nothing of this one");
}

Test(home_names, a_seal_needs_an_empty_directory_at_rest)
{
    struct home_news news;
    int result;
    cr_assert_eq(reserve(2, 1, "a"), 0);
    cr_assert_eq(home_seal(&shuntd, dir, 0), MESSAGE_BUSY);
    cr_assert(is_awaited(2, 1));
    cr_assert_not(home_next_news(shuntd.home, &news));
    end(2, 1, "a", &file);
    cr_assert(home_next_news(shuntd.home, &news) && news.kind == NEWS_IDLE && dirid_equal(news.dir, out));
    cr_assert_not(home_next_news(shuntd.home, &news), "once");
    cr_assert_eq(home_seal(&shuntd, dir, 0), MESSAGE_NOT_EMPTY);
    cr_assert_eq(reserve(2, 2, "b"), 0, "it was not sealed");
    end(2, 2, "b", NULL);
    index_del_entry(shuntd.index, out, "a", 1);
    cr_assert_eq(home_seal(&shuntd, dir, 0), 0);
    cr_assert_eq(reserve(2, 3, "c"), -1);
    home_unseal(&shuntd, dir);
    cr_assert(next(&result) == 3 && result == MESSAGE_ELSEWHERE, "it begins again: its leaf may be gone");
    cr_assert_eq(home_held_count(shuntd.home), 0);
}

Test(home_names, idle_is_told_only_while_it_is_so)
{
    struct home_news news;
    cr_assert_eq(reserve(2, 1, "a"), 0);
    cr_assert_eq(home_seal(&shuntd, dir, 0), MESSAGE_BUSY);
    cr_assert(is_awaited(2, 1));
    end(2, 1, "a", NULL);
    cr_assert_eq(reserve(2, 2, "a"), 0, "who was sent back begins anew at once");
    cr_assert(is_awaited(2, 2));
    cr_assert_not(home_next_news(shuntd.home, &news));
    end(2, 2, "a", NULL);
    cr_assert(home_next_news(shuntd.home, &news) && news.kind == NEWS_IDLE && dirid_equal(news.dir, out));
    cr_assert_not(home_next_news(shuntd.home, &news), "once");
}

Test(home_names, what_was_there_since_a_seal_was_tried_first_is_told)
{
    cr_assert_eq(reserve(2, 1, "a"), 0);
    cr_assert_eq(home_seal(&shuntd, dir, CLOCK_SECOND), MESSAGE_BUSY, "it may never be made");
    end(2, 1, "a", &file);
    shuntd.now = clock_monotonic();
    cr_assert_eq(hold(2, 2, "a", 0, RECORD_DYING), MESSAGE_EXISTS);
    cr_assert_eq(home_seal(&shuntd, dir, 0), MESSAGE_BUSY, "it may be gone by now, and since long");
    cr_assert_eq(home_seal(&shuntd, dir, CLOCK_SECOND), MESSAGE_NOT_EMPTY);
    end(2, 2, "a", NULL);
    cr_assert_eq(home_seal(&shuntd, dir, CLOCK_SECOND), 0);
}

Test(home_names, who_holds_a_name_hears_once_that_somebody_waits)
{
    struct home_news news;
    int result;
    cr_assert_eq(reserve(2, 1, "a"), 0);
    cr_assert_not(home_next_news(shuntd.home, &news), "nobody waits");
    cr_assert_eq(lookup(3, "a"), -1);
    cr_assert(is_awaited(2, 1));
    cr_assert_eq(lookup(1, "a"), -1);
    cr_assert_not(home_next_news(shuntd.home, &news), "he knows");
    end(2, 1, "a", NULL);
    while (next(&result) != 0)
        cr_assert_eq(result, MESSAGE_ABSENT);
    cr_assert_eq(reserve(3, 4, "b"), 0);
    cr_assert_eq(home_tell_idle(shuntd.home, dir), 0);
    cr_assert(is_awaited(3, 4));
    cr_assert_eq(reserve(2, 5, "c"), 0);
    cr_assert(is_awaited(2, 5), "also who begins while a directory is to be removed");
}

static int reserve_ahead(uint16_t member, uint64_t id, const char *name)
{
    struct name_question q = question(NAME_RESERVE, member, id, name);
    q.flags = NAME_AHEAD;
    q.entry = (struct record_entry){.type = DT_REG, .state = RECORD_PENDING, .branch = 7, .leaf = 3};
    return ask(q, NULL);
}

static bool is_news(void)
{
    struct home_news news;
    return home_next_news(shuntd.home, &news);
}

Test(home_names, what_is_asked_for_ahead_waits_for_nobody)
{
    cr_assert_eq(reserve_ahead(2, 1, "a"), 0);
    cr_assert_eq(reserve_ahead(3, 1, "a"), MESSAGE_BUSY);
    cr_assert_eq(hold(3, 2, "a", NAME_AHEAD, RECORD_DYING), MESSAGE_BUSY);
    cr_assert_not(is_news(), "nothing is taken from anybody");
    cr_assert_eq(reserve(3, 3, "a"), -1);
    cr_assert(is_awaited(2, 1));
    end(2, 1, "a", NULL);
    struct name_question waited;
    struct name_answer answer;
    cr_assert_eq(home_next_question(&shuntd, &waited, &answer), 1);
    cr_assert(waited.member == 3 && waited.id == 3 && answer.result == 0);
    end(3, 3, "a", &file);
    cr_assert_eq(hold(3, 4, "a", NAME_AHEAD, RECORD_DYING), MESSAGE_EXISTS);
    cr_assert_not(is_news(), "nor does it look into anybody's leaf");
    end(3, 4, "a", &file);
    cr_assert_eq(hold(3, 5, "a", 0, 0), MESSAGE_EXISTS);
    cr_assert(is_news());
}

Test(home_names, a_listing_waits_for_what_nobody_has_asked_for)
{
    struct link listing;
    list_init(&listing);
    cr_assert_eq(home_settle_ahead(shuntd.home, dir), 0);
    cr_assert_eq(reserve(2, 1, "made"), 0);
    cr_assert_eq(home_settle_ahead(shuntd.home, dir), 0, "nobody waits for a process");
    cr_assert_eq(reserve_ahead(2, 2, "claimed"), 0);
    cr_assert_eq(reserve_ahead(3, 3, "free"), 0);
    cr_assert_eq(home_settle_ahead(shuntd.home, dir), 1);
    list_append(&dir->casts, &listing);
    cr_assert(is_news() && is_news() && !is_news(), "both hear of it");
    cr_assert_eq(reserve_ahead(3, 4, "more"), MESSAGE_BUSY);
    cr_assert_eq(reserve(3, 5, "asked for"), 0);
    ask(question(NAME_CLAIMED, 3, 2, "claimed"), NULL); /* it is not his */
    cr_assert_eq(dir->ahead, 2);
    ask(question(NAME_CLAIMED, 2, 2, "claimed"), NULL);
    cr_assert_null(home_next_ready(shuntd.home));
    end(3, 3, "free", NULL);
    cr_assert_eq(home_next_ready(shuntd.home), &listing);
    cr_assert(dir->ahead == 0 && dir->held == 3);
    cr_assert_eq(reserve_ahead(3, 6, "more"), 0, "from now on");
    home_let_go(shuntd.home);
    cr_assert(dir->ahead == 0 && dir->held == 0);
}

Test(home_names, who_looks_for_a_name_that_is_not_there_has_it_given_back)
{
    reserve(2, 1, "made");
    reserve_ahead(2, 2, "foreseen");
    home_looked_for(shuntd.home, out, "made", 4);
    home_looked_for(shuntd.home, out, "neither", 7);
    cr_assert_not(is_news());
    home_looked_for(shuntd.home, out, "foreseen", 8);
    cr_assert(is_awaited(2, 2) && !is_news());
}

Test(home_names, an_owner_hears_once_who_looks_into_his_leaf)
{
    struct home_news news;
    index_put_entry(shuntd.index, out, "a", 1, &file);
    lookup(2, "a");
    cr_assert_not(home_next_news(shuntd.home, &news), "he himself");
    lookup(3, "a");
    cr_assert(home_next_news(shuntd.home, &news) && news.kind == NEWS_LOOKED_INTO);
    cr_assert(news.branch == 7 && news.leaf == 3);
    lookup(3, "a");
    cr_assert_eq(home_looked_into(&shuntd, dir, &file, 1), 0);
    cr_assert_not(home_next_news(shuntd.home, &news), "he knows");
}

struct handed {
    unsigned count;
    uint64_t ids;
};

static int count_handed(void *context, uint16_t to, struct dirid id, const char *name, size_t length, uint16_t member,
                        uint64_t flight)
{
    struct handed *handed = context;
    cr_assert(to == 3 && dirid_equal(id, out) && length == 1 && member == 2);
    handed->count++;
    handed->ids += flight;
    return 0;
}

Test(home_names, what_goes_to_another_home_is_held_there)
{
    uint16_t to[RECORD_SHARDS] = {0};
    struct handed handed = {0};
    int result;
    cr_assert_eq(reserve(2, 1, "a"), 0);
    cr_assert_eq(reserve(2, 2, "b"), 0);
    cr_assert_eq(lookup(3, "b"), -1);
    to[record_shard(out, record_hash("b", 1))] = 3;
    cr_assert_neq(record_shard(out, record_hash("a", 1)), record_shard(out, record_hash("b", 1)));
    cr_assert_eq(home_hand_over(&shuntd, to, count_handed, &handed), 0);
    cr_assert(handed.count == 1 && handed.ids == 2);
    cr_assert(next(&result) == 99 && result == MESSAGE_ELSEWHERE);
    cr_assert_eq(home_held_count(shuntd.home), 1);
    cr_assert_eq(home_hold_for(&shuntd, dir, "c", 1, 2, 5), 0);
    cr_assert_eq(reserve(3, 8, "c"), -1, "as if it had been reserved here");
    end(2, 5, "c", NULL);
    cr_assert(next(&result) == 8 && result == 0);
}

Test(home_names, what_a_member_holds)
{
    struct name_question q;
    cr_assert_eq(reserve(2, 1, "a"), 0);
    cr_assert_eq(reserve(3, 2, "b"), 0);
    cr_assert_not(home_held_by(shuntd.home, 4, &q));
    cr_assert(home_held_by(shuntd.home, 3, &q));
    cr_assert(q.op == NAME_END && q.id == 2 && q.length == 1 && q.name[0] == 'b');
    ask(q, NULL);
    cr_assert_not(home_held_by(shuntd.home, 3, &q));
}

/* All begins anew. */

static void list(const char *name)
{
    cr_assert_eq(home_list_name(&shuntd, dir, name, strlen(name), &file), 0);
}

Test(home_names, who_waits_is_sent_away_when_nobody_holds_anything_any_more)
{
    int result;
    cr_assert_eq(reserve(2, 1, "a"), 0);
    cr_assert_eq(lookup(3, "a"), -1);
    home_let_go(shuntd.home);
    cr_assert_eq(home_held_count(shuntd.home), 0);
    cr_assert_eq(dir->held, 0);
    cr_assert_eq(next(&result), 99);
    cr_assert_eq(result, MESSAGE_ELSEWHERE);
}

Test(home_names, what_is_held_is_not_believed_as_it_was_listed)
{
    dir->complete = false;
    cr_assert_eq(home_hold_for(&shuntd, dir, "held", 4, 2, 1), 0);
    list("held");
    list("other");
    cr_assert_eq(state_of("held"), 0);
    cr_assert_eq(state_of("other"), RECORD_LIVE);
    end(2, 1, "held", NULL);
    list("held");
    cr_assert_eq(state_of("held"), 0, "it may have been listed before it went");
    cr_assert(home_may_list(shuntd.home, dir, record_hash("other", 5)));
    dir->complete = true;
    home_list_end(dir);
    list("held");
    cr_assert_eq(state_of("held"), RECORD_LIVE);
}

Test(home_names, what_was_made_while_its_directory_was_listed_stays)
{
    struct record_entry entry;
    const struct record_entry newer = {.type = DT_REG, .state = RECORD_LIVE, .ino = 77};
    dir->complete = false;
    cr_assert_eq(home_hold_for(&shuntd, dir, "a", 1, 2, 1), 0);
    end(2, 1, "a", &newer);
    list("a");
    cr_assert_eq(index_get_entry(shuntd.index, out, "a", 1, &entry), 0);
    cr_assert_eq(entry.ino, 77);
}
