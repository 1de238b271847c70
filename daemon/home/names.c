/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The home of names: an entry in the index and its claim, nothing else. Whichever daemon asks, this one or
 * another, is told here. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "home/home.h"
#include "index/index.h"
#include "home/state.h"

/* A name that somebody is at work on. */
struct claim {
    struct claim *next; /* in its bucket */
    struct home_dir *dir;
    uint16_t member;
    bool awaited;    /* the claimant knows that its end is waited for */
    bool early;      /* it was held before its directory was complete */
    bool prefetched; /* no process has asked for it yet, as far as is known here */
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
struct ended_claim {
    struct link link;
    uint64_t hash;
};

struct notification {
    struct link link;
    struct home_notification body;
};

static struct claim **names_bucket_of_hash(struct home *home, struct dirid dir, uint64_t hash)
{
    return &home->claims[(hash ^ dir.ino * 0x9e3779b97f4a7c15ull) % HOME_BUCKETS];
}

static struct claim **names_bucket_of(struct home *home, struct dirid dir, const char *name, size_t length)
{
    return names_bucket_of_hash(home, dir, record_hash(name, length));
}

static struct claim **names_find_claim(struct home *home, struct dirid dir, const char *name, size_t length)
{
    struct claim **at = names_bucket_of(home, dir, name, length);
    while (*at != NULL &&
           !(dirid_equal((*at)->dir->id, dir) && (*at)->length == length && memcmp((*at)->name, name, length) == 0))
        at = &(*at)->next;
    return at;
}

static int names_wait(struct home *home, struct link *list, const struct name_question *question)
{
    struct waiting *waiting = malloc(sizeof *waiting);
    HOOK("request-blocked");
    if (waiting == NULL)
        return -ENOMEM;
    waiting->question = *question;
    waiting->question.name = waiting->name;
    memcpy(waiting->name, question->name, question->length);
    list_append(list, &waiting->link);
    home->waiting++;
    return HOME_WAITS;
}

static int names_say(struct home *home, const struct home_notification *what)
{
    struct notification *notifications = malloc(sizeof *notifications);
    if (notifications == NULL)
        return -ENOMEM;
    notifications->body = *what;
    list_append(&home->notifications, &notifications->link);
    return 0;
}

/* Its end is waited for: its claimant, which would else report it later, hears of it once. */
static int names_await(struct home *home, struct claim *held)
{
    const struct home_notification notifications = {
        .kind = NOTIFY_AWAITED, .dir = held->dir->id, .member = held->member, .operation = held->id};
    if (held->awaited)
        return 0;
    int code = names_say(home, &notifications);
    held->awaited = code == 0;
    return code;
}

static int names_hold_name(struct home *home, struct home_dir *dir, const char *name, size_t length, uint16_t member,
                           uint64_t id, bool prefetch)
{
    struct claim **bucket = names_bucket_of(home, dir->id, name, length);
    struct claim *held = malloc(sizeof *held);
    if (held == NULL)
        return -ENOMEM;
    held->dir = dir;
    held->member = member;
    held->awaited = false;
    held->early = !dir->complete;
    held->prefetched = prefetch;
    held->id = id;
    held->length = (uint16_t)length;
    memcpy(held->name, name, length);
    list_init(&held->waiting);
    held->next = *bucket;
    *bucket = held;
    dir->claims++;
    dir->prefetched_claims += prefetch;
    home->claim_count++;
    return dir->reports_idle || dir->recalled ? names_await(home, held) : 0;
}

int home_claim_for(struct home *home, struct home_dir *dir, const char *name, size_t length, uint16_t member, uint64_t id)
{
    return names_hold_name(home, dir, name, length, member, id, false);
}

static int names_add_claim(struct home *home, struct home_dir *dir, const struct name_question *q)
{
    return names_hold_name(home, dir, q->name, q->length, q->member, q->id, (q->flags & NAME_PREFETCH) != 0);
}

/* A process has asked for it, or none ever will. */
static void names_is_known(struct home *home, struct claim *held)
{
    struct home_dir *dir = held->dir;
    if (!held->prefetched)
        return;
    held->prefetched = false;
    if (--dir->prefetched_claims > 0 || !dir->draining)
        return;
    dir->draining = false;
    home_collectives_ready(home, &dir->blocked_collectives);
}

/* It is claimed no more, and out of its bucket. The requests that wait for it are the caller's. */
static void names_let_go(struct home *home, struct claim *held)
{
    names_is_known(home, held);
    held->dir->claims--;
    home->claim_count--;
}

static int names_put(struct home *home, const struct name_question *q, const struct record_entry *entry)
{
    return home_put_entry(home, q->dir, q->name, q->length, entry);
}

/* Another node looks at a file in somebody's branch: its owner is told, once for a leaf. */
int home_report_visit(struct home *home, struct home_dir *dir, const struct record_entry *entry, uint16_t branch)
{
    uint64_t leaf = (uint64_t)entry->branch << 32 | entry->leaf;
    if (entry->branch == 0 || entry->branch == branch)
        return 0;
    for (unsigned i = 0; i < sizeof dir->reported_leaves / sizeof *dir->reported_leaves; i++)
        if (dir->reported_leaves[i] == leaf + 1)
            return 0;
    dir->reported_leaves[dir->reported_next++ % (sizeof dir->reported_leaves / sizeof *dir->reported_leaves)] = leaf + 1;
    const struct home_notification notifications = {
        .kind = NOTIFY_LEAF_VISITED, .dir = dir->id, .branch = entry->branch, .leaf = entry->leaf};
    return names_say(home, &notifications);
}

static int names_looked_into(struct home *home, struct home_dir *dir, const struct record_entry *entry,
                             const struct name_question *q)
{
    const bool looks = !(q->flags & NAME_PREFETCH) && !(q->flags & NAME_PEEK && entry->state == RECORD_LIVE);
    return looks ? home_report_visit(home, dir, entry, q->branch) : 0;
}

static int names_exists(struct home *home, struct home_dir *dir, const struct name_question *q,
                        const struct record_entry *entry, struct name_answer *answer)
{
    answer->result = MESSAGE_EXISTS;
    answer->entry = *entry;
    return names_looked_into(home, dir, entry, q);
}

/* For a new name: if not, the client is told as by a file system that is full. What is on its way to its end (entry.state)
 * adds none. */
static bool names_has_room(struct home *home, const struct name_question *q, struct name_answer *answer)
{
    int code = q->entry.state != 0 ? 0 : home_make_room(home, q->dir, q->name, q->length);
    if (code != 0)
        answer->result = code;
    return code == 0;
}

static int names_find_entry(struct home *home, const struct name_question *q, struct record_entry *entry)
{
    return home_get_entry(home, q->dir, q->name, q->length, entry);
}

static int names_reserve(struct home *home, struct home_dir *dir, const struct name_question *q, struct name_answer *answer)
{
    struct record_entry there = q->entry;
    there.state = RECORD_PENDING;
    there.ino = 0;
    answer->entry = there;
    int code = BROKEN("no-cas") ? names_put(home, q, &there) : home_add_entry(home, q->dir, q->name, q->length, &there);
    if (code == -EEXIST)
        return names_exists(home, dir, q, &there, answer);
    if (code == -ENOSPC)
        answer->result = code;
    return code == 0 ? names_add_claim(home, dir, q) : code == -ENOSPC ? 0 : code;
}

/* A name that is to be there later is pending from now on, as one that is reserved. */
static int names_take_absent(struct home *home, struct home_dir *dir, const struct name_question *q, struct name_answer *answer)
{
    answer->result = MESSAGE_ABSENT;
    if (!(q->flags & NAME_EVEN_ABSENT))
        return 0;
    if (q->entry.state != RECORD_PENDING)
        return names_has_room(home, q, answer) ? names_add_claim(home, dir, q) : 0;
    answer->result = 0;
    int code = names_reserve(home, dir, q, answer);
    answer->result = answer->result == 0 ? MESSAGE_ABSENT : answer->result;
    return code;
}

static int names_take(struct home *home, struct home_dir *dir, const struct name_question *q, const struct record_entry *entry,
                      struct name_answer *answer)
{
    struct record_entry meanwhile = *entry;
    int code = names_add_claim(home, dir, q);
    answer->result = MESSAGE_EXISTS;
    answer->entry = *entry;
    dir->existing_claimed_at = *home->uses.now;
    meanwhile.state = q->entry.state;
    if (code == 0 && q->entry.state != 0)
        code = names_put(home, q, &meanwhile);
    return code == 0 ? names_looked_into(home, dir, entry, q) : code;
}

/* Of a name that nobody holds. */
static int names_decide(struct home *home, struct home_dir *dir, const struct name_question *q, struct name_answer *answer)
{
    struct record_entry entry = {0};
    answer->result = 0;
    if (q->op == NAME_RESERVE)
        return names_reserve(home, dir, q, answer);
    int code = names_find_entry(home, q, &entry);
    bool there = code == 0;
    if (code != 0 && code != -ENOENT)
        return code;
    switch (q->op) {
    case NAME_CLAIM:
        return there ? names_take(home, dir, q, &entry, answer) : names_take_absent(home, dir, q, answer);
    case NAME_LOOKUP:
        answer->result = MESSAGE_ABSENT;
        return there ? names_exists(home, dir, q, &entry, answer) : 0;
    default: /* MARK of a name that is not held */
        return 0;
    }
}

int home_each_awaited(const struct home *home, int (*each)(void *context, uint16_t member), void *context)
{
    int code = 0;
    for (size_t i = 0; i < HOME_BUCKETS && home->waiting > 0 && code == 0; i++)
        for (const struct claim *held = home->claims[i]; held != NULL && code == 0; held = held->next)
            code = list_empty(&held->waiting) ? 0 : each(context, held->member);
    return code;
}

static bool names_is_at_rest(const struct home_dir *dir)
{
    return dir->claims == 0 && !home_dir_is_busy(dir) && !dir->writing;
}

/* Nothing stands in the way of the directory's rmdir here any more. */
int home_names_wake(struct home *home, struct home_dir *dir)
{
    if (!names_is_at_rest(dir) || !dir->reports_idle)
        return 0;
    const struct home_notification notifications = {.kind = NOTIFY_IDLE, .dir = dir->id};
    dir->reports_idle = false;
    return names_say(home, &notifications);
}

static int names_note_ended(struct home_dir *dir, const struct claim *held)
{
    struct ended_claim *ended = malloc(sizeof *ended);
    if (ended == NULL)
        return -ENOMEM;
    ended->hash = record_hash(held->name, held->length);
    list_append(&dir->ended_claims, &ended->link);
    return 0;
}

bool home_may_list(struct home *home, const struct home_dir *dir, uint64_t hash)
{
    for (const struct link *link = dir->ended_claims.next; link != &dir->ended_claims; link = link->next)
        if (LINK_OF(link, struct ended_claim, link)->hash == hash)
            return BROKEN("listed-beats");
    for (const struct claim *held = *names_bucket_of_hash(home, dir->id, hash); held != NULL; held = held->next)
        if (held->dir == dir && record_hash(held->name, held->length) == hash)
            return false;
    return true;
}

/* What was put for an operation that ended elsewhere (names_end_of_nothing) is that file, too. */
static bool names_is_place(const struct record_entry *a, const struct record_entry *b)
{
    return a->branch == b->branch && a->leaf == b->leaf;
}

int home_list_name(struct home *home, struct home_dir *dir, const char *name, size_t length, const struct record_entry *entry)
{
    struct record_entry there = *entry;
    if (!home_may_list(home, dir, record_hash(name, length)))
        return 0;
    int code = home_add_entry(home, dir->id, name, length, &there);
    if (code == 0) {
        dir->listed_bytes += length;
        return home_spill(home, dir);
    }
    if (code == -EEXIST && (names_is_place(&there, entry) || BROKEN("twice-unseen")))
        return home_put_entry(home, dir->id, name, length, entry);
    if (code != -EEXIST && code != -ENOSPC)
        return code;
    if (dir->list_result == 0 || code == -ENOSPC)
        dir->list_result = code == -EEXIST ? MESSAGE_TWICE : code;
    return 0;
}

struct listed {
    struct home *home;
    struct home_dir *dir;
};

static bool names_was_listed(void *context, uint64_t hash)
{
    const struct listed *listed = context;
    return home_may_list(listed->home, listed->dir, hash);
}

int home_unlist(struct home *home, struct home_dir *dir)
{
    dir->listed = dir->expected = 0;
    dir->list_result = 0;
    dir->listed_names = dir->listed_bytes = 0;
    if (dir->claims == 0 && list_empty(&dir->ended_claims))
        home_end_spill(dir);
    return home_del_entries(home, dir->id, names_was_listed, &(struct listed){home, dir});
}

int home_list_begin(struct home *home, struct home_dir *dir, uint64_t number)
{
    if (number <= dir->load_number)
        return number == dir->load_number ? 0 : -ESTALE;
    dir->load_number = number;
    home_dir_note_use(home, dir);
    dir->complete = false;
    home_collectives_ready(home, &dir->blocked_collectives); /* word of the earlier one is over */
    return home_unlist(home, dir);
}

void home_list_end(struct home_dir *dir)
{
    for (struct link *link; (link = list_take(&dir->ended_claims)) != NULL;)
        free(LINK_OF(link, struct ended_claim, link));
}

static int names_end(struct home *home, struct claim **at, const struct name_question *q)
{
    struct claim *held = *at;
    struct home_dir *dir = held->dir;
    int noted = dir->complete && !held->early ? 0 : names_note_ended(dir, held);
    int code = noted != 0            ? noted
               : q->entry.state != 0 ? names_put(home, q, &q->entry)
                                     : home_del_entry(home, q->dir, q->name, q->length);
    *at = held->next;
    names_let_go(home, held);
    list_move(&home->questions, &held->waiting);
    free(held);
    if (code == 0)
        code = home_names_wake(home, dir);
    if (code == 0 && dir->recalled && dir->claims == 0)
        code = names_say(home, &(struct home_notification){.kind = NOTIFY_UNCLAIMED, .dir = dir->id});
    home_dir_release(home, dir);
    return code;
}

/* It is not claimed here, since the daemon that was its home has died: what was made is on disk, though the daemon that reads
 * that again may have done so before. */
static int names_end_of_nothing(struct home *home, const struct name_question *q)
{
    struct record_entry there;
    if (q->entry.state == 0)
        return 0;
    int code = home_get_entry(home, q->dir, q->name, q->length, &there);
    return code == -ENOENT ? names_put(home, q, &q->entry) : code;
}

static bool names_is_owner(const struct claim *held, const struct name_question *q)
{
    return held->member == q->member && held->id == q->id;
}

/* A new name that is held, and which may have a file by now: 1. What else is held has to be waited for: 0. Its holder hears
 * that somebody looks, as from a process that reads the index. */
static int names_peek(struct home *home, struct claim *held, const struct name_question *q, struct name_answer *answer)
{
    struct record_entry entry;
    if (!(q->flags & NAME_PEEK) || held->dir->frozen || BROKEN("unpeeked"))
        return 0;
    int code = names_find_entry(home, q, &entry);
    if (code != 0 || entry.state != RECORD_PENDING || entry.ino != 0)
        return code == -ENOENT ? 0 : code;
    code = held->prefetched ? names_await(home, held) : 0;
    code = code == 0 ? names_exists(home, held->dir, q, &entry, answer) : code;
    return code == 0 ? 1 : code;
}

int home_ask(struct home *home, const struct name_question *q, struct name_answer *answer)
{
    struct claim **at = names_find_claim(home, q->dir, q->name, q->length);
    *answer = (struct name_answer){0};
    if (*at != NULL && names_is_owner(*at, q) && (q->op == NAME_RELEASE || q->op == NAME_MARK))
        return q->op == NAME_RELEASE ? names_end(home, at, q) : names_put(home, q, &q->entry);
    if (q->op == NAME_RELEASE)
        return names_end_of_nothing(home, q);
    if (q->op == NAME_REQUESTED) {
        if (*at != NULL && names_is_owner(*at, q))
            names_is_known(home, *at);
        return 0;
    }
    struct home_dir *dir = home_dir_find(home, q->dir);
    if (dir == NULL || !dir->complete) {
        answer->result = MESSAGE_NOT_LOADED;
        return 0;
    }
    dir->use.last = *home->uses.now;
    if (*at == NULL && !dir->frozen && !(dir->draining && (q->flags & NAME_PREFETCH)))
        return names_decide(home, dir, q, answer);
    int peeked = *at != NULL ? names_peek(home, *at, q, answer) : 0;
    if (peeked != 0)
        return peeked < 0 ? peeked : 0;
    if (q->flags & (NAME_NONBLOCK | NAME_PREFETCH)) {
        answer->result = MESSAGE_BUSY;
        return 0;
    }
    if (q->op == NAME_LOOKUP && BROKEN("absent-while-pending")) {
        answer->result = MESSAGE_ABSENT;
        return 0;
    }
    ++*home->uses.blocked;
    int code = *at != NULL ? names_await(home, *at) : 0;
    return code == 0 ? names_wait(home, *at != NULL ? &(*at)->waiting : &dir->frozen_questions, q) : code;
}

static void names_let_begin_again(const struct link *asking)
{
    for (struct link *link = asking->next; link != asking; link = link->next)
        LINK_OF(link, struct waiting, link)->question.op = 0;
}

/* A request that came while it was frozen starts again: what it chose, a leaf for instance, may be gone. */
static void names_send_away(struct home *home, struct link *asking)
{
    names_let_begin_again(asking);
    list_move(&home->questions, asking);
}

int home_next_question(struct home *home, struct name_question *question, struct name_answer *answer)
{
    int code = HOME_WAITS;
    while (code == HOME_WAITS) {
        struct link *link = list_take(&home->questions);
        if (link == NULL)
            return 0;
        struct waiting *waiting = LINK_OF(link, struct waiting, link);
        home->waiting--;
        *question = waiting->question;
        *answer = (struct name_answer){.result = MESSAGE_REMOTE};
        code = question->op == 0 ? 0 : home_ask(home, question, answer);
        free(waiting);
    }
    return code == 0 ? 1 : code;
}

/* Those that are held in a directory, or only those for which no process has asked: rarely asked, so all are looked at. */
static int names_await_all(struct home *home, const struct home_dir *dir, bool prefetch)
{
    int code = 0;
    for (unsigned i = 0; i < HOME_BUCKETS && dir->claims > 0; i++)
        for (struct claim *held = home->claims[i]; held != NULL && code == 0; held = held->next)
            code = held->dir == dir && (held->prefetched || !prefetch) ? names_await(home, held) : 0;
    return code;
}

int home_await_all(struct home *home, const struct home_dir *dir)
{
    return names_await_all(home, dir, false);
}

int home_recall_prefetched(struct home *home, struct dirid dir, const char *name, size_t length)
{
    struct claim *held = *names_find_claim(home, dir, name, length);
    return held != NULL && held->prefetched ? names_await(home, held) : 0;
}

int home_drain_prefetched(struct home *home, struct home_dir *dir)
{
    if (dir->prefetched_claims == 0)
        return 0;
    dir->draining = true;
    int code = names_await_all(home, dir, true);
    return code == 0 ? 1 : code;
}

int home_report_idle(struct home *home, struct home_dir *dir)
{
    dir->reports_idle = true;
    return home_await_all(home, dir);
}

/* A request that was sent back by a freeze ends and starts again at once. If the coordinator were told in between, it would
 * freeze again and send it back again, for ever. */
static bool names_is_over(struct home *home, const struct home_notification *notifications)
{
    struct home_dir *dir = notifications->kind == NOTIFY_IDLE ? home_dir_find(home, notifications->dir) : NULL;
    return dir != NULL && !names_is_at_rest(dir) && home_report_idle(home, dir) == 0;
}

bool home_next_notification(struct home *home, struct home_notification *to)
{
    for (struct link *link; (link = list_take(&home->notifications)) != NULL;) {
        *to = LINK_OF(link, struct notification, link)->body;
        free(LINK_OF(link, struct notification, link));
        if (!names_is_over(home, to))
            return true;
    }
    return false;
}

int home_freeze(struct home *home, struct home_dir *dir, uint64_t tried)
{
    int names = home_has_entries(home, dir->id);
    if (names < 0)
        return names;
    if (dir->claims > 0 && dir->existing_claimed_at > clock_monotonic() - tried)
        return MESSAGE_NOT_EMPTY;
    if (!names_is_at_rest(dir)) {
        int code = home_report_idle(home, dir);
        return code == 0 ? MESSAGE_BUSY : code;
    }
    dir->reports_idle = false;
    dir->frozen = names == 0;
    return names == 0 ? 0 : MESSAGE_NOT_EMPTY;
}

int home_thaw(struct home *home, struct home_dir *dir)
{
    dir->frozen = false;
    home_wake(home, &dir->blocked); /* for a leaf */
    names_send_away(home, &dir->frozen_questions);
    return 0;
}

bool home_claim_of_member(struct home *home, uint16_t member, struct name_question *end)
{
    for (unsigned i = 0; i < HOME_BUCKETS; i++)
        for (const struct claim *held = home->claims[i]; held != NULL; held = held->next)
            if (held->member == member) {
                *end = (struct name_question){.op = NAME_RELEASE,
                                              .member = member,
                                              .id = held->id,
                                              .dir = held->dir->id,
                                              .name = held->name,
                                              .length = held->length};
                return true;
            }
    return false;
}

int home_hand_over(struct home *home, const uint16_t *to, home_each_claim *each, void *context)
{
    int code = 0;
    names_let_begin_again(&home->questions); /* what they waited for has ended, and is another home's by now */
    for (unsigned i = 0; i < HOME_BUCKETS && code == 0; i++)
        for (struct claim **at = &home->claims[i]; *at != NULL && code == 0;) {
            struct claim *held = *at;
            uint32_t shard = record_shard(held->dir->id, record_hash(held->name, held->length));
            uint16_t next = held->dir->delegation == 0 ? to[shard] : 0;
            if (next == 0) {
                at = &held->next;
                continue;
            }
            struct home_dir *dir = held->dir;
            code = each(context, next, dir->id, held->name, held->length, held->member, held->id);
            *at = held->next;
            names_let_go(home, held);
            names_send_away(home, &held->waiting);
            free(held);
            if (code == 0 && !BROKEN("idle-unsaid")) /* the next home is asked then, and says it of its own */
                code = home_names_wake(home, dir);
        }
    return code;
}

void home_drop_claims(struct home *home)
{
    for (unsigned i = 0; i < HOME_BUCKETS; i++)
        for (struct claim *held; (held = home->claims[i]) != NULL;) {
            home->claims[i] = held->next;
            names_let_go(home, held);
            names_send_away(home, &held->waiting);
            free(held);
        }
}

void home_redirect_waiters(struct home *home, struct home_dir *dir)
{
    names_send_away(home, &dir->frozen_questions);
}

unsigned home_claim_count(struct home *home)
{
    return home->claim_count;
}

void home_names_free(struct home *home)
{
    for (unsigned i = 0; i < HOME_BUCKETS; i++)
        for (struct claim *held; (held = home->claims[i]) != NULL;) {
            home->claims[i] = held->next;
            list_move(&home->questions, &held->waiting);
            free(held);
        }
    home_asking_free(&home->questions);
    for (struct link *link; (link = list_take(&home->notifications)) != NULL;)
        free(LINK_OF(link, struct notification, link));
}

void home_asking_free(struct link *asking)
{
    for (struct link *link; (link = list_take(asking)) != NULL;)
        free(LINK_OF(link, struct waiting, link));
}
