/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "rpc/collective.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request/request.h"
#include "rpc/peer_rpc.h"
#include "wire/page.h"

enum cast_flag { CAST_LOST = 2 };

#define ANSWER_MAX (MESSAGE_FIXED + PAGE_MAX)
_Static_assert(ANSWER_MAX <= FRAME_ITEM_MAX, "an answer fits a frame");

/* Whom it is to reach, on the way: its number, and what it is to expect. */
struct stop {
    uint16_t member;
    uint32_t expected;
};

struct cast {
    struct link all;
    struct link link; /* on a directory's casts */
    uint64_t id;      /* here */
    uint16_t parent;  /* who handed it over; this daemon itself: nobody did */
    uint64_t parent_id;
    uint32_t expected;
    uint16_t below[2]; /* who has not answered yet; 0: nobody */
    bool working;      /* this daemon's own part is not done */
    bool waited;       /* ... and had to wait */
    int result;
    bool lost;
    unsigned hops;
    uint16_t type; /* of the message */
    cast_done *done;
    void *context;
    char *page; /* NULL: nothing yet */
    size_t room, used;
    uint64_t limit; /* of the page */
    uint32_t size;
    uint8_t bytes[]; /* the message */
};

static cast_part *const parts[MESSAGE_TYPES] = {
    [MESSAGE_KNOWN] = cast_known,   [MESSAGE_RECORD] = cast_record, [MESSAGE_SEAL] = cast_seal,
    [MESSAGE_UNSEAL] = cast_unseal, [MESSAGE_DROP] = cast_drop,     [MESSAGE_SETTLE] = cast_settle,
    [MESSAGE_FOLLOW] = cast_sync,   [MESSAGE_SYNC] = cast_sync,     [MESSAGE_WATCH] = cast_watch,
    [MESSAGE_LIST] = cast_list,     [MESSAGE_MOVED] = cast_place,   [MESSAGE_IDLE] = cast_moved_on,
    [MESSAGE_STATUS] = cast_status, [MESSAGE_STOP] = cast_stop,     [MESSAGE_MOVING] = cast_moving,
};

uint32_t cast_expected(const struct cast *cast)
{
    return cast->expected;
}

size_t cast_room(const struct cast *cast)
{
    return cast->room;
}

bool cast_has_waited(const struct cast *cast)
{
    return cast->waited;
}

bool cast_is_mine(const struct cast *cast)
{
    return cast->parent_id == 0;
}

void cast_wait_on(struct cast *cast, struct link *list)
{
    cast->waited = true;
    list_remove(&cast->link);
    list_append(list, &cast->link);
}

void cast_wait(struct cast *cast, struct home_dir *dir)
{
    cast_wait_on(cast, &dir->casts);
}

static int add_counters(struct cast *cast, const char *page, size_t used)
{
    if (cast->page == NULL && (cast->page = calloc(1, REQUEST_TEXT_MAX)) == NULL)
        return -ENOMEM;
    cast->used = status_add(cast->page, cast->used, page, used);
    return 0;
}

int cast_page(struct cast *cast, const char *page, size_t used, uint64_t limit)
{
    const struct page_part parts_of[2] = {{cast->page, cast->used, cast->limit}, {page, used, limit}};
    if (cast->type == MESSAGE_STATUS)
        return add_counters(cast, page, used);
    if (cast->type != MESSAGE_LIST)
        return 0;
    char *merged = malloc(cast->room);
    if (merged == NULL)
        return -ENOMEM;
    cast->limit = page_merge(merged, cast->room, &cast->used, parts_of);
    free(cast->page);
    cast->page = merged;
    return 0;
}

/* The way back. */

/* What one daemon says that decides for all. */
static int rank(int result)
{
    return result < 0 ? 1000 : result == MESSAGE_NOT_EMPTY ? 999 : result;
}

static void combine(struct cast *cast, int result)
{
    if (rank(result) > rank(cast->result))
        cast->result = result;
}

static int end_here(struct shuntd *shuntd, struct cast *cast)
{
    const struct cast_end end = {.result = cast->result,
                                 .page = cast->page,
                                 .used = cast->used,
                                 .limit = cast->limit,
                                 .lost = cast->lost,
                                 .hops = cast->hops};
    if (cast->hops > shuntd->counts.hops)
        shuntd->counts.hops = cast->hops;
    return cast->done != NULL ? cast->done(shuntd, cast->context, &end) : 0;
}

/* The bytes: the answer, the page. */
static int answer_above(struct shuntd *shuntd, const struct cast *cast)
{
    const struct message answer = {.type = MESSAGE_ANSWER,
                                   .flags = cast->lost ? CAST_LOST : 0,
                                   .tag = cast->hops + 2,
                                   .result = cast->result,
                                   .child.ino = cast->limit};
    uint8_t bytes[ANSWER_MAX];
    size_t head = message_encode(bytes, sizeof bytes, &answer);
    if (cast->used > 0)
        memcpy(bytes + head, cast->page, cast->used);
    const struct frame_item item = {
        .kind = RELAY_CAST_ANSWER, .client = cast->parent_id, .bytes = bytes, .size = (uint32_t)(head + cast->used)};
    int code = peers_put(shuntd->peers, cast->parent, &item);
    return code == -EHOSTUNREACH ? 0 : code;
}

static void cast_destroy(struct cast *cast)
{
    free(cast->page);
    free(cast);
}

/* All is answered: it goes up, or has come to its end. */
static int settle(struct shuntd *shuntd, struct cast *cast)
{
    if (cast->working || cast->below[0] != 0 || cast->below[1] != 0)
        return 0;
    list_remove(&cast->all);
    list_remove(&cast->link);
    int code = cast_is_mine(cast) ? end_here(shuntd, cast) : answer_above(shuntd, cast);
    cast_destroy(cast);
    return code;
}

int cast_finish(struct shuntd *shuntd, struct cast *cast, int result)
{
    combine(cast, result);
    cast->working = false;
    return settle(shuntd, cast);
}

static int do_part(struct shuntd *shuntd, struct cast *cast)
{
    struct message message;
    int result = message_decode(&message, cast->bytes, cast->size);
    cast->working = true;
    if (result == 0)
        result = parts[message.type](shuntd, cast, &message);
    if (result == CAST_LATER || result == CAST_WORKS)
        return 0;
    return cast_finish(shuntd, cast, result);
}

static struct cast *by_id(struct shuntd *shuntd, uint64_t id)
{
    for (struct link *link = shuntd->casts.next; link != &shuntd->casts; link = link->next)
        if (LINK_OF(link, struct cast, all)->id == id)
            return LINK_OF(link, struct cast, all);
    return NULL;
}

int cast_answered(struct shuntd *shuntd, uint16_t member, uint64_t id, const uint8_t *bytes, size_t size)
{
    struct cast *cast = by_id(shuntd, id);
    struct message answer;
    if (cast == NULL || size < MESSAGE_FIXED || message_decode(&answer, bytes, MESSAGE_FIXED) != 0 ||
        (cast->below[0] != member && cast->below[1] != member))
        return 0;
    cast->below[cast->below[0] == member ? 0 : 1] = 0;
    combine(cast, answer.result);
    if (answer.tag > cast->hops)
        cast->hops = answer.tag;
    cast->lost |= (answer.flags & CAST_LOST) != 0;
    combine(cast, cast_page(cast, (const char *)bytes + MESSAGE_FIXED, size - MESSAGE_FIXED, answer.child.ino));
    return settle(shuntd, cast);
}

int cast_gone(struct shuntd *shuntd, uint16_t member)
{
    struct link *link = shuntd->casts.next;
    int code = 0;
    while (code == 0 && link != &shuntd->casts) {
        struct cast *cast = LINK_OF(link, struct cast, all);
        link = link->next;
        for (int i = 0; i < 2; i++)
            if (cast->below[i] == member) {
                cast->below[i] = 0;
                cast->lost = true;
            }
        if (!cast_is_mine(cast) && cast->parent == member)
            cast->below[0] = cast->below[1] = 0;
        code = settle(shuntd, cast);
    }
    return code;
}

int cast_resume(struct shuntd *shuntd)
{
    int code = 0;
    for (struct link *link; code == 0 && (link = home_next_ready(shuntd->home)) != NULL;)
        code = do_part(shuntd, LINK_OF(link, struct cast, link));
    return code;
}

/* The way there. */

#define STOP_SIZE 6

static void put_stop(uint8_t *to, const struct stop *stop)
{
    const uint16_t member = htole16(stop->member);
    const uint32_t expected = htole32(stop->expected);
    memcpy(to, &member, 2);
    memcpy(to + 2, &expected, 4);
}

static struct stop take_stop(const uint8_t *from)
{
    struct stop stop;
    memcpy(&stop.member, from, 2);
    memcpy(&stop.expected, from + 2, 4);
    return (struct stop){.member = le16toh(stop.member), .expected = le32toh(stop.expected)};
}

/* Hands `count` stops to the first of them. The bytes: how many others, each, the message. */
static int hand_over(struct shuntd *shuntd, struct cast *cast, const struct stop *stops, size_t count, int which)
{
    const uint16_t number = htole16((uint16_t)count);
    size_t head = 2 + count * STOP_SIZE;
    uint8_t *bytes = malloc(head + cast->size);
    if (bytes == NULL)
        return -ENOMEM;
    memcpy(bytes, &number, 2);
    for (size_t i = 0; i < count; i++)
        put_stop(bytes + 2 + i * STOP_SIZE, &stops[i]);
    memcpy(bytes + head, cast->bytes, cast->size);
    const struct frame_item item = {
        .kind = RELAY_CAST, .client = cast->id, .bytes = bytes, .size = (uint32_t)(head + cast->size)};
    int code = peers_put(shuntd->peers, stops[0].member, &item);
    free(bytes);
    if (code == 0)
        cast->below[which] = stops[0].member;
    return code == -EHOSTUNREACH ? 0 : code;
}

static int spread(struct shuntd *shuntd, struct cast *cast, const struct stop *stops, size_t count)
{
    size_t half = (count + 1) / 2;
    int code = half > 0 ? hand_over(shuntd, cast, stops, half, 0) : 0;
    return code == 0 && count > half ? hand_over(shuntd, cast, stops + half, count - half, 1) : code;
}

/* As much of a page as was asked for. */
static size_t room_of(const struct message *message)
{
    uint64_t room = message->type == MESSAGE_LIST ? message->child.birth : 0;
    return room < PAGE_LEAST ? PAGE_LEAST : room > PAGE_MAX ? PAGE_MAX : room;
}

static struct cast *begin(struct shuntd *shuntd, const struct message *message, const uint8_t *bytes, size_t size)
{
    struct cast *cast = calloc(1, sizeof *cast + size);
    if (cast == NULL)
        return NULL;
    cast->id = ++shuntd->last_cast;
    cast->type = message->type;
    cast->room = room_of(message);
    cast->limit = PAGE_ALL;
    cast->parent = shuntd->me.number;
    cast->working = true; /* until its part was done */
    cast->size = (uint32_t)size;
    memcpy(cast->bytes, bytes, size);
    list_init(&cast->link);
    list_append(&shuntd->casts, &cast->all);
    return cast;
}

/* Not to those who cannot be reached yet: they know nothing. */
static size_t list_members(const struct shuntd *shuntd, const uint32_t *expected, struct stop *stops)
{
    size_t count = 0;
    for (size_t i = 0; i < shuntd->session.count; i++) {
        uint16_t member = shuntd->session.members[i].number;
        uint8_t part = shuntd->session.members[i].home;
        if (member != shuntd->me.number && peers_knows(shuntd->peers, member) && part != SESSION_GONE && part != SESSION_LOST)
            stops[count++] = (struct stop){.member = member, .expected = expected != NULL ? expected[member] : 0};
    }
    return count;
}

int cast_begin(struct shuntd *shuntd, const struct message *message, const uint32_t *expected, cast_done *done, void *context)
{
    uint8_t bytes[MESSAGE_SHORT + MESSAGE_TEXT_MAX];
    struct stop stops[SESSION_MEMBERS_MAX];
    struct cast *cast = begin(shuntd, message, bytes, message_encode(bytes, sizeof bytes, message));
    if (cast == NULL)
        return -ENOMEM;
    cast->done = done;
    cast->context = context;
    cast->expected = expected != NULL ? expected[shuntd->me.number] : 0;
    int code = spread(shuntd, cast, stops, list_members(shuntd, expected, stops));
    return code == 0 ? do_part(shuntd, cast) : code;
}

int cast_take(struct shuntd *shuntd, uint16_t member, uint64_t id, const uint8_t *bytes, size_t size)
{
    struct stop stops[SESSION_MEMBERS_MAX];
    struct message message;
    uint16_t count = 0;
    if (size >= 2)
        memcpy(&count, bytes, 2);
    count = le16toh(count);
    size_t head = 2 + (size_t)count * STOP_SIZE;
    if (count == 0 || count > SESSION_MEMBERS_MAX || size < head || id == 0 ||
        message_decode(&message, bytes + head, size - head) != 0 || message.type >= MESSAGE_TYPES ||
        parts[message.type] == NULL || take_stop(bytes + 2).member != shuntd->me.number) {
        shuntd->counts.malformed++;
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        stops[i] = take_stop(bytes + 2 + i * STOP_SIZE);
    struct cast *cast = begin(shuntd, &message, bytes + head, size - head);
    if (cast == NULL)
        return -ENOMEM;
    cast->parent = member;
    cast->parent_id = id;
    cast->expected = stops[0].expected;
    int code = spread(shuntd, cast, stops + 1, count - 1u);
    return code == 0 ? do_part(shuntd, cast) : code;
}

bool cast_is_under_way(const struct shuntd *shuntd)
{
    return !list_empty(&shuntd->casts);
}

void cast_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->casts)) != NULL;)
        cast_destroy(LINK_OF(link, struct cast, all));
}
