/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The home of names: an entry in the index and who holds it, nothing else. Whoever asks, this daemon itself or
 * another, is told here. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "home/state.h"
#include "shuntd.h"

/* A name that somebody is at work on. */
struct held {
    struct held *next; /* in its bucket */
    struct home_dir *dir;
    uint16_t member;
    bool awaited; /* who holds it knows that somebody waits for its end */
    bool early;   /* it was held before its directory was complete */
    bool ahead;   /* no process has asked for it yet, as far as is known here */
    uint64_t id;
    struct link waiting; /* questions */
    uint16_t length;
    char name[RECORD_NAME_MAX];
};

/* A question that waits: its name is copied along. */
struct waiting {
    struct link link;
    struct name_question question;
    char name[RECORD_NAME_MAX];
};

/* A name that was held before its directory was known, and may have been listed before that ended. */
struct ended {
    struct link link;
    uint64_t hash;
};

struct news {
    struct link link;
    struct home_news news;
};

static struct held **bucket_of_hash(struct home *home, struct dirid dir, uint64_t hash)
{
    return &home->held[(hash ^ dir.ino * 0x9e3779b97f4a7c15ull) % HOME_BUCKETS];
}

static struct held **bucket_of(struct home *home, struct dirid dir, const char *name, size_t length)
{
    return bucket_of_hash(home, dir, record_hash(name, length));
}

static struct held **find(struct home *home, struct dirid dir, const char *name, size_t length)
{
    struct held **at = bucket_of(home, dir, name, length);
    while (*at != NULL &&
           !(dirid_equal((*at)->dir->id, dir) && (*at)->length == length && memcmp((*at)->name, name, length) == 0))
        at = &(*at)->next;
    return at;
}

static int wait(struct home *home, struct link *list, const struct name_question *question)
{
    struct waiting *waiting = malloc(sizeof *waiting);
    HOOK("request-parked");
    if (waiting == NULL)
        return -ENOMEM;
    waiting->question = *question;
    waiting->question.name = waiting->name;
    memcpy(waiting->name, question->name, question->length);
    list_append(list, &waiting->link);
    home->waiting++;
    return HOME_WAITS;
}

static int say(struct home *home, const struct home_news *what)
{
    struct news *news = malloc(sizeof *news);
    if (news == NULL)
        return -ENOMEM;
    news->news = *what;
    list_append(&home->news, &news->link);
    return 0;
}

/* Its end is waited for: its holder, who has time for that else, hears of it once. */
static int await(struct home *home, struct held *held)
{
    const struct home_news news = {.kind = NEWS_AWAITED, .dir = held->dir->id, .member = held->member, .flight = held->id};
    if (held->awaited)
        return 0;
    int code = say(home, &news);
    held->awaited = code == 0;
    return code;
}

static int hold_name(struct shuntd *shuntd, struct home_dir *dir, const char *name, size_t length, uint16_t member, uint64_t id,
                     bool ahead)
{
    struct held **bucket = bucket_of(shuntd->home, dir->id, name, length);
    struct held *held = malloc(sizeof *held);
    if (held == NULL)
        return -ENOMEM;
    held->dir = dir;
    held->member = member;
    held->awaited = false;
    held->early = !dir->complete;
    held->ahead = ahead;
    held->id = id;
    held->length = (uint16_t)length;
    memcpy(held->name, name, length);
    list_init(&held->waiting);
    held->next = *bucket;
    *bucket = held;
    dir->held++;
    dir->ahead += ahead;
    shuntd->home->held_count++;
    return dir->tells_idle || dir->wanted ? await(shuntd->home, held) : 0;
}

int home_hold_for(struct shuntd *shuntd, struct home_dir *dir, const char *name, size_t length, uint16_t member, uint64_t id)
{
    return hold_name(shuntd, dir, name, length, member, id, false);
}

static int hold(struct shuntd *shuntd, struct home_dir *dir, const struct name_question *q)
{
    return hold_name(shuntd, dir, q->name, q->length, q->member, q->id, (q->flags & NAME_AHEAD) != 0);
}

/* A process has asked for it, or none ever will. */
static void is_known(struct home *home, struct held *held)
{
    struct home_dir *dir = held->dir;
    if (!held->ahead)
        return;
    held->ahead = false;
    if (--dir->ahead > 0 || !dir->settles)
        return;
    dir->settles = false;
    home_ready(home, &dir->casts);
}

/* It is not held any more, and out of its bucket. Who waits for it is the caller's. */
static void let_go(struct home *home, struct held *held)
{
    is_known(home, held);
    held->dir->held--;
    home->held_count--;
}

static int put(struct shuntd *shuntd, const struct name_question *q, const struct record_entry *entry)
{
    return index_put_entry(shuntd->index, q->dir, q->name, q->length, entry);
}

/* Another node looks at a file in somebody's branch: its owner is told, once for a leaf. */
int home_looked_into(struct shuntd *shuntd, struct home_dir *dir, const struct record_entry *entry, uint16_t member)
{
    uint64_t leaf = (uint64_t)entry->branch << 32 | entry->leaf;
    if (entry->branch == 0 || entry->branch == shuntd_branch(shuntd, member))
        return 0;
    for (unsigned i = 0; i < sizeof dir->told / sizeof *dir->told; i++)
        if (dir->told[i] == leaf + 1)
            return 0;
    dir->told[dir->told_at++ % (sizeof dir->told / sizeof *dir->told)] = leaf + 1;
    const struct home_news news = {.kind = NEWS_LOOKED_INTO, .dir = dir->id, .branch = entry->branch, .leaf = entry->leaf};
    return say(shuntd->home, &news);
}

static int looked_into(struct shuntd *shuntd, struct home_dir *dir, const struct record_entry *entry,
                       const struct name_question *q)
{
    return q->flags & NAME_AHEAD ? 0 : home_looked_into(shuntd, dir, entry, q->member);
}

static int exists(struct shuntd *shuntd, struct home_dir *dir, const struct name_question *q, const struct record_entry *entry,
                  struct name_answer *answer)
{
    answer->result = MESSAGE_EXISTS;
    answer->entry = *entry;
    return looked_into(shuntd, dir, entry, q);
}

/* For a new name: who asks is told if not, as by a file system that is full. What is on its way to its end (entry.state)
 * adds none. */
static bool has_room(struct shuntd *shuntd, const struct name_question *q, struct name_answer *answer)
{
    int code = q->entry.state != 0 ? 0 : index_make_room(shuntd->index, q->dir, q->name, q->length);
    if (code != 0)
        answer->result = code;
    return code == 0;
}

static int find_entry(struct shuntd *shuntd, const struct name_question *q, struct record_entry *entry)
{
    return index_get_entry(shuntd->index, q->dir, q->name, q->length, entry);
}

static int reserve(struct shuntd *shuntd, struct home_dir *dir, const struct name_question *q, struct name_answer *answer)
{
    struct record_entry there = q->entry;
    there.state = RECORD_PENDING;
    there.ino = 0;
    answer->entry = there;
    int code = BROKEN("no-cas") ? put(shuntd, q, &there) : index_add_entry(shuntd->index, q->dir, q->name, q->length, &there);
    if (code == -EEXIST)
        return exists(shuntd, dir, q, &there, answer);
    if (code == -ENOSPC)
        answer->result = code;
    return code == 0 ? hold(shuntd, dir, q) : code == -ENOSPC ? 0 : code;
}

static int take(struct shuntd *shuntd, struct home_dir *dir, const struct name_question *q, bool there,
                const struct record_entry *entry, struct name_answer *answer)
{
    struct record_entry meanwhile = *entry;
    answer->result = there ? MESSAGE_EXISTS : MESSAGE_ABSENT;
    answer->entry = *entry;
    if (!there && (!(q->flags & NAME_ANYHOW) || !has_room(shuntd, q, answer)))
        return 0;
    int code = hold(shuntd, dir, q);
    if (there)
        dir->was_there = shuntd->now;
    meanwhile.state = q->entry.state;
    if (code == 0 && there && q->entry.state != 0)
        code = put(shuntd, q, &meanwhile);
    return code == 0 ? looked_into(shuntd, dir, entry, q) : code;
}

/* Of a name that nobody holds. */
static int decide(struct shuntd *shuntd, struct home_dir *dir, const struct name_question *q, struct name_answer *answer)
{
    struct record_entry entry = {0};
    answer->result = 0;
    if (q->op == NAME_RESERVE)
        return reserve(shuntd, dir, q, answer);
    int code = find_entry(shuntd, q, &entry);
    bool there = code == 0;
    if (code != 0 && code != -ENOENT)
        return code;
    switch (q->op) {
    case NAME_HOLD:
        return take(shuntd, dir, q, there, &entry, answer);
    case NAME_LOOKUP:
        answer->result = MESSAGE_ABSENT;
        return there ? exists(shuntd, dir, q, &entry, answer) : 0;
    default: /* MARK of a name that is not held */
        return 0;
    }
}

static bool is_at_rest(const struct home_dir *dir)
{
    return dir->held == 0 && !home_dir_is_busy(dir) && !dir->writing;
}

/* Nothing stands in the way of a removal of the directory here any more. */
int home_names_rest(struct home *home, struct home_dir *dir)
{
    if (!is_at_rest(dir) || !dir->tells_idle)
        return 0;
    const struct home_news news = {.kind = NEWS_IDLE, .dir = dir->id};
    dir->tells_idle = false;
    return say(home, &news);
}

static int note_ended(struct home_dir *dir, const struct held *held)
{
    struct ended *ended = malloc(sizeof *ended);
    if (ended == NULL)
        return -ENOMEM;
    ended->hash = record_hash(held->name, held->length);
    list_append(&dir->ended, &ended->link);
    return 0;
}

bool home_may_list(struct home *home, const struct home_dir *dir, uint64_t hash)
{
    for (const struct link *link = dir->ended.next; link != &dir->ended; link = link->next)
        if (LINK_OF(link, struct ended, link)->hash == hash)
            return BROKEN("listed-beats");
    for (const struct held *held = *bucket_of_hash(home, dir->id, hash); held != NULL; held = held->next)
        if (held->dir == dir && record_hash(held->name, held->length) == hash)
            return false;
    return true;
}

int home_list_name(struct shuntd *shuntd, struct home_dir *dir, const char *name, size_t length,
                   const struct record_entry *entry)
{
    return home_may_list(shuntd->home, dir, record_hash(name, length))
               ? index_put_entry(shuntd->index, dir->id, name, length, entry)
               : 0;
}

struct listed {
    struct home *home;
    struct home_dir *dir;
};

static bool was_listed(void *context, uint64_t hash)
{
    const struct listed *listed = context;
    return home_may_list(listed->home, listed->dir, hash);
}

int home_unlist(struct shuntd *shuntd, struct home_dir *dir)
{
    dir->listed = dir->expected = 0;
    return index_del_names(shuntd->index, dir->id, was_listed, &(struct listed){shuntd->home, dir});
}

int home_list_begin(struct shuntd *shuntd, struct home_dir *dir, uint64_t number)
{
    if (number <= dir->load)
        return number == dir->load ? 0 : -ESTALE;
    dir->load = number;
    dir->complete = false;
    home_ready(shuntd->home, &dir->casts); /* word of the earlier one is over */
    return home_unlist(shuntd, dir);
}

void home_list_end(struct home_dir *dir)
{
    for (struct link *link; (link = list_take(&dir->ended)) != NULL;)
        free(LINK_OF(link, struct ended, link));
}

static int end(struct shuntd *shuntd, struct held **at, const struct name_question *q)
{
    struct held *held = *at;
    struct home_dir *dir = held->dir;
    int noted = dir->complete && !held->early ? 0 : note_ended(dir, held);
    int code = noted != 0            ? noted
               : q->entry.state != 0 ? put(shuntd, q, &q->entry)
                                     : index_del_entry(shuntd->index, q->dir, q->name, q->length);
    *at = held->next;
    let_go(shuntd->home, held);
    list_move(&shuntd->home->questions, &held->waiting);
    free(held);
    if (code == 0)
        code = home_names_rest(shuntd->home, dir);
    if (code == 0 && dir->wanted && dir->held == 0)
        code = say(shuntd->home, &(struct home_news){.kind = NEWS_FREE, .dir = dir->id});
    home_dir_release(shuntd->home, dir);
    return code;
}

/* Nobody holds it here, since the daemon that was its home has died: what was made is on disk, though whoever reads
 * that again may have done so before. */
static int end_of_nothing(struct shuntd *shuntd, const struct name_question *q)
{
    struct record_entry there;
    if (q->entry.state == 0)
        return 0;
    int code = index_get_entry(shuntd->index, q->dir, q->name, q->length, &there);
    return code == -ENOENT ? put(shuntd, q, &q->entry) : code;
}

static bool is_owner(const struct held *held, const struct name_question *q)
{
    return held->member == q->member && held->id == q->id;
}

/* A new name that is held, and which may have a file by now: 1. What else is held has to be waited for: 0. Its holder hears
 * that somebody looks, as from who reads the index. */
static int peek(struct shuntd *shuntd, struct held *held, const struct name_question *q, struct name_answer *answer)
{
    struct record_entry entry;
    if (!(q->flags & NAME_PEEK) || held->dir->sealed || BROKEN("unpeeked"))
        return 0;
    int code = find_entry(shuntd, q, &entry);
    if (code != 0 || entry.state != RECORD_PENDING || entry.ino != 0)
        return code == -ENOENT ? 0 : code;
    code = held->ahead ? await(shuntd->home, held) : 0;
    code = code == 0 ? exists(shuntd, held->dir, q, &entry, answer) : code;
    return code == 0 ? 1 : code;
}

int home_ask(struct shuntd *shuntd, const struct name_question *q, struct name_answer *answer)
{
    struct held **at = find(shuntd->home, q->dir, q->name, q->length);
    *answer = (struct name_answer){0};
    if (*at != NULL && is_owner(*at, q) && (q->op == NAME_END || q->op == NAME_MARK))
        return q->op == NAME_END ? end(shuntd, at, q) : put(shuntd, q, &q->entry);
    if (q->op == NAME_END)
        return end_of_nothing(shuntd, q);
    if (q->op == NAME_CLAIMED) {
        if (*at != NULL && is_owner(*at, q))
            is_known(shuntd->home, *at);
        return 0;
    }
    struct home_dir *dir = home_dir_find(shuntd->home, q->dir);
    if (dir == NULL || !dir->complete) {
        answer->result = MESSAGE_NOT_LOADED;
        return 0;
    }
    if (*at == NULL && !dir->sealed && !(dir->settles && (q->flags & NAME_AHEAD)))
        return decide(shuntd, dir, q, answer);
    int peeked = *at != NULL ? peek(shuntd, *at, q, answer) : 0;
    if (peeked != 0)
        return peeked < 0 ? peeked : 0;
    if ((*at != NULL && (q->flags & NAME_TRY)) || (q->flags & NAME_AHEAD)) {
        answer->result = MESSAGE_BUSY;
        return 0;
    }
    if (q->op == NAME_LOOKUP && BROKEN("absent-while-pending")) {
        answer->result = MESSAGE_ABSENT;
        return 0;
    }
    shuntd->counts.parked++;
    int code = *at != NULL ? await(shuntd->home, *at) : 0;
    return code == 0 ? wait(shuntd->home, *at != NULL ? &(*at)->waiting : &dir->asking, q) : code;
}

/* Who asked while it was sealed begins again: what he chose, a leaf for one, may be no more. */
static void send_away(struct home *home, struct link *asking)
{
    for (struct link *link = asking->next; link != asking; link = link->next)
        LINK_OF(link, struct waiting, link)->question.op = 0;
    list_move(&home->questions, asking);
}

int home_next_question(struct shuntd *shuntd, struct name_question *question, struct name_answer *answer)
{
    int code = HOME_WAITS;
    while (code == HOME_WAITS) {
        struct link *link = list_take(&shuntd->home->questions);
        if (link == NULL)
            return 0;
        struct waiting *waiting = LINK_OF(link, struct waiting, link);
        shuntd->home->waiting--;
        *question = waiting->question;
        *answer = (struct name_answer){.result = MESSAGE_ELSEWHERE};
        code = question->op == 0 ? 0 : home_ask(shuntd, question, answer);
        free(waiting);
    }
    return code == 0 ? 1 : code;
}

/* Those that are held in a directory, or only those for which no process has asked: rarely asked, so all are looked at. */
static int await_all(struct home *home, const struct home_dir *dir, bool ahead)
{
    int code = 0;
    for (unsigned i = 0; i < HOME_BUCKETS && dir->held > 0; i++)
        for (struct held *held = home->held[i]; held != NULL && code == 0; held = held->next)
            code = held->dir == dir && (held->ahead || !ahead) ? await(home, held) : 0;
    return code;
}

int home_await_all(struct home *home, const struct home_dir *dir)
{
    return await_all(home, dir, false);
}

int home_looked_for(struct home *home, struct dirid dir, const char *name, size_t length)
{
    struct held *held = *find(home, dir, name, length);
    return held != NULL && held->ahead ? await(home, held) : 0;
}

int home_settle_ahead(struct home *home, struct home_dir *dir)
{
    if (dir->ahead == 0)
        return 0;
    dir->settles = true;
    int code = await_all(home, dir, true);
    return code == 0 ? 1 : code;
}

int home_tell_idle(struct home *home, struct home_dir *dir)
{
    dir->tells_idle = true;
    return home_await_all(home, dir);
}

/* Who was sent back by a seal ends and begins anew at once. Were the ruler told in between, he would seal again, and send him
 * back again, for ever. */
static bool is_over(struct home *home, const struct home_news *news)
{
    struct home_dir *dir = news->kind == NEWS_IDLE ? home_dir_find(home, news->dir) : NULL;
    return dir != NULL && !is_at_rest(dir) && home_tell_idle(home, dir) == 0;
}

bool home_next_news(struct home *home, struct home_news *to)
{
    for (struct link *link; (link = list_take(&home->news)) != NULL;) {
        *to = LINK_OF(link, struct news, link)->news;
        free(LINK_OF(link, struct news, link));
        if (!is_over(home, to))
            return true;
    }
    return false;
}

int home_seal(struct shuntd *shuntd, struct home_dir *dir, uint64_t tried)
{
    int names = index_has_names(shuntd->index, dir->id);
    if (names < 0)
        return names;
    if (dir->held > 0 && dir->was_there > clock_monotonic() - tried)
        return MESSAGE_NOT_EMPTY;
    if (!is_at_rest(dir)) {
        int code = home_tell_idle(shuntd->home, dir);
        return code == 0 ? MESSAGE_BUSY : code;
    }
    dir->tells_idle = false;
    dir->sealed = names == 0;
    return names == 0 ? 0 : MESSAGE_NOT_EMPTY;
}

int home_unseal(struct shuntd *shuntd, struct home_dir *dir)
{
    dir->sealed = false;
    send_away(shuntd->home, &dir->asking);
    return 0;
}

bool home_held_by(struct home *home, uint16_t member, struct name_question *end)
{
    for (unsigned i = 0; i < HOME_BUCKETS; i++)
        for (const struct held *held = home->held[i]; held != NULL; held = held->next)
            if (held->member == member) {
                *end = (struct name_question){.op = NAME_END,
                                              .member = member,
                                              .id = held->id,
                                              .dir = held->dir->id,
                                              .name = held->name,
                                              .length = held->length};
                return true;
            }
    return false;
}

int home_hand_over(struct shuntd *shuntd, const uint16_t *to, home_each_held *each, void *context)
{
    int code = 0;
    for (unsigned i = 0; i < HOME_BUCKETS && code == 0; i++)
        for (struct held **at = &shuntd->home->held[i]; *at != NULL && code == 0;) {
            struct held *held = *at;
            uint32_t shard = record_shard(held->dir->id, record_hash(held->name, held->length));
            uint16_t next = held->dir->whole == 0 ? to[shard] : 0;
            if (next == 0) {
                at = &held->next;
                continue;
            }
            code = each(context, next, held->dir->id, held->name, held->length, held->member, held->id);
            *at = held->next;
            let_go(shuntd->home, held);
            send_away(shuntd->home, &held->waiting);
            free(held);
        }
    return code;
}

void home_let_go(struct home *home)
{
    for (unsigned i = 0; i < HOME_BUCKETS; i++)
        for (struct held *held; (held = home->held[i]) != NULL;) {
            home->held[i] = held->next;
            let_go(home, held);
            send_away(home, &held->waiting);
            free(held);
        }
}

void home_send_away(struct home *home, struct home_dir *dir)
{
    send_away(home, &dir->asking);
}

unsigned home_held_count(struct home *home)
{
    return home->held_count;
}

void home_names_free(struct home *home)
{
    for (unsigned i = 0; i < HOME_BUCKETS; i++)
        for (struct held *held; (held = home->held[i]) != NULL;) {
            home->held[i] = held->next;
            list_move(&home->questions, &held->waiting);
            free(held);
        }
    home_asking_free(&home->questions);
    for (struct link *link; (link = list_take(&home->news)) != NULL;)
        free(LINK_OF(link, struct news, link));
}

void home_asking_free(struct link *asking)
{
    for (struct link *link; (link = list_take(asking)) != NULL;)
        free(LINK_OF(link, struct waiting, link));
}
