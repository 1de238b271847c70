/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "rpc/collective.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "home/home.h"
#include "request/request.h"
#include "rpc/peer_rpc.h"
#include "wire/page.h"

#define ANSWER_MAX (MESSAGE_FIXED + MESSAGE_BODY_MAX + PAGE_MAX)
_Static_assert(ANSWER_MAX <= FRAME_ITEM_MAX, "an answer fits a frame");

/* A member that it is to reach: its number, and how many names it is to expect. */
struct stop {
    uint16_t member;
    uint32_t expected;
};

struct collective {
    struct link all;
    struct link link; /* on a directory's blocked_collectives */
    uint64_t id;      /* here */
    uint16_t parent;  /* the member that handed it over; this daemon itself: none did */
    uint64_t parent_id;
    uint32_t expected;
    uint16_t below[2]; /* that have not answered yet; 0: none */
    bool working;      /* this daemon's own part is not done */
    bool waited;       /* ... and had to wait */
    int result;
    bool lost;
    unsigned hops;
    uint16_t type; /* of the message */
    collective_done *done;
    void *context;
    char *page; /* NULL: nothing yet */
    size_t room, used;
    uint64_t limit; /* of the page */
    uint32_t size;
    uint8_t bytes[]; /* the message */
};

static collective_part *collective_part_of(const struct shuntd *shuntd, uint16_t type)
{
    return type < MESSAGE_TYPES ? shuntd->collective_handlers->part[type] : NULL;
}

uint32_t collective_expected(const struct collective *collective)
{
    return collective->expected;
}

size_t collective_room(const struct collective *collective)
{
    return collective->room;
}

bool collective_has_waited(const struct collective *collective)
{
    return collective->waited;
}

bool collective_is_mine(const struct collective *collective)
{
    return collective->parent_id == 0;
}

void collective_wait_on(struct collective *collective, struct link *list)
{
    collective->waited = true;
    list_remove(&collective->link);
    list_append(list, &collective->link);
}

void collective_wait(struct collective *collective, struct home_dir *dir)
{
    collective_wait_on(collective, &dir->blocked_collectives);
}

static int collective_add(struct shuntd *shuntd, struct collective *collective, const char *page, size_t used)
{
    if (collective->page == NULL && (collective->page = malloc(PAGE_MAX)) == NULL)
        return -ENOMEM;
    collective->used = shuntd->collective_handlers->add[collective->type](collective->page, collective->used, page, used);
    return 0;
}

int collective_page(struct shuntd *shuntd, struct collective *collective, const char *page, size_t used, uint64_t limit)
{
    const struct page_part parts_of[2] = {{collective->page, collective->used, collective->limit}, {page, used, limit}};
    if (shuntd->collective_handlers->add[collective->type] != NULL)
        return collective_add(shuntd, collective, page, used);
    if (collective->type != MESSAGE_LIST)
        return 0;
    char *merged = malloc(collective->room);
    if (merged == NULL)
        return -ENOMEM;
    collective->limit = page_merge(merged, collective->room, &collective->used, parts_of);
    free(collective->page);
    collective->page = merged;
    return 0;
}

/* The way back. */

/* What one daemon says that decides for all. */
static int collective_rank(int result)
{
    return result < 0 ? 1000 : result == MESSAGE_NOT_EMPTY ? 999 : result;
}

static void collective_combine(struct collective *collective, int result)
{
    if (collective_rank(result) > collective_rank(collective->result))
        collective->result = result;
}

static int collective_end_here(struct shuntd *shuntd, struct collective *collective)
{
    const struct collective_end end = {.result = collective->result,
                                       .page = collective->page,
                                       .used = collective->used,
                                       .limit = collective->limit,
                                       .lost = collective->lost};
    if (collective->hops > shuntd->counts.max_hops)
        shuntd->counts.max_hops = collective->hops;
    return collective->done != NULL ? collective->done(shuntd, collective->context, &end) : 0;
}

/* The bytes: the answer, the page. */
static int collective_answer_above(struct shuntd *shuntd, const struct collective *collective)
{
    const struct message answer = {
        .type = MESSAGE_COLLECTIVE_ANSWER,
        .result = collective->result,
        .collective_answer = {.limit = collective->limit, .hops = collective->hops + 2, .lost = collective->lost}};
    uint8_t bytes[ANSWER_MAX];
    size_t head = message_encode(bytes, sizeof bytes, &answer);
    if (collective->used > 0)
        memcpy(bytes + head, collective->page, collective->used);
    const struct frame_item item = {.kind = RPC_COLLECTIVE_ANSWER,
                                    .client = collective->parent_id,
                                    .bytes = bytes,
                                    .size = (uint32_t)(head + collective->used)};
    int code = peers_put(shuntd->peers, collective->parent, &item);
    return code == -EHOSTUNREACH ? 0 : code;
}

static void collective_destroy(struct collective *collective)
{
    free(collective->page);
    free(collective);
}

/* All is answered: it goes up, or has come to its end. */
static int collective_settle_part(struct shuntd *shuntd, struct collective *collective)
{
    if (collective->working || collective->below[0] != 0 || collective->below[1] != 0)
        return 0;
    list_remove(&collective->all);
    list_remove(&collective->link);
    int code =
        collective_is_mine(collective) ? collective_end_here(shuntd, collective) : collective_answer_above(shuntd, collective);
    collective_destroy(collective);
    return code;
}

int collective_finish(struct shuntd *shuntd, struct collective *collective, int result)
{
    collective_combine(collective, result);
    collective->working = false;
    return collective_settle_part(shuntd, collective);
}

static int collective_do_part(struct shuntd *shuntd, struct collective *collective)
{
    struct message message;
    int result = message_decode(&message, collective->bytes, collective->size);
    collective->working = true;
    if (result == 0)
        result = collective_part_of(shuntd, message.type)(shuntd, collective, &message);
    if (result == COLLECTIVE_LATER || result == COLLECTIVE_WORKS)
        return 0;
    return collective_finish(shuntd, collective, result);
}

static struct collective *collective_by_id(struct shuntd *shuntd, uint64_t id)
{
    for (struct link *link = shuntd->collectives.next; link != &shuntd->collectives; link = link->next)
        if (LINK_OF(link, struct collective, all)->id == id)
            return LINK_OF(link, struct collective, all);
    return NULL;
}

int collective_answered(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    const uint64_t id = item->client;
    const uint8_t *bytes = item->bytes;
    const size_t size = item->size, head = message_size(&(struct message){.type = MESSAGE_COLLECTIVE_ANSWER});
    struct collective *collective = collective_by_id(shuntd, id);
    struct message answer;
    if (collective == NULL || size < head || message_decode(&answer, bytes, head) != 0 ||
        answer.type != MESSAGE_COLLECTIVE_ANSWER || (collective->below[0] != member && collective->below[1] != member))
        return 0;
    collective->below[collective->below[0] == member ? 0 : 1] = 0;
    collective_combine(collective, answer.result);
    if (answer.collective_answer.hops > collective->hops)
        collective->hops = answer.collective_answer.hops;
    collective->lost |= answer.collective_answer.lost;
    collective_combine(collective, collective_page(shuntd, collective, (const char *)bytes + head, size - head,
                                                   answer.collective_answer.limit));
    return collective_settle_part(shuntd, collective);
}

int collective_gone(struct shuntd *shuntd, uint16_t member)
{
    struct link *link = shuntd->collectives.next;
    int code = 0;
    while (code == 0 && link != &shuntd->collectives) {
        struct collective *collective = LINK_OF(link, struct collective, all);
        link = link->next;
        for (int i = 0; i < 2; i++)
            if (collective->below[i] == member) {
                collective->below[i] = 0;
                collective->lost = true;
            }
        if (!collective_is_mine(collective) && collective->parent == member)
            collective->below[0] = collective->below[1] = 0;
        code = collective_settle_part(shuntd, collective);
    }
    return code;
}

int collective_resume(struct shuntd *shuntd)
{
    int code = 0;
    for (struct link *link; code == 0 && (link = home_next_collective(shuntd->home)) != NULL;)
        code = collective_do_part(shuntd, LINK_OF(link, struct collective, link));
    return code;
}

int collective_each_asked(struct shuntd *shuntd, uint64_t *last, rpc_each_member *each)
{
    const uint64_t upto = *last;
    int code = 0;
    *last = shuntd->last_collective;
    for (struct link *link = shuntd->collectives.next; link != &shuntd->collectives; link = link->next) {
        const struct collective *collective = LINK_OF(link, struct collective, all);
        for (int i = 0; i < 2 && code == 0; i++)
            code = collective->id <= upto && collective->below[i] != 0 ? each(shuntd, collective->below[i]) : 0;
    }
    return code;
}

/* The way there. */

#define STOP_SIZE 6

static void collective_put_stop(uint8_t *to, const struct stop *stop)
{
    const uint16_t member = htole16(stop->member);
    const uint32_t expected = htole32(stop->expected);
    memcpy(to, &member, 2);
    memcpy(to + 2, &expected, 4);
}

static struct stop collective_take_stop(const uint8_t *from)
{
    struct stop stop;
    memcpy(&stop.member, from, 2);
    memcpy(&stop.expected, from + 2, 4);
    return (struct stop){.member = le16toh(stop.member), .expected = le32toh(stop.expected)};
}

/* Hands `count` stops to the first of them: 0, -EHOSTUNREACH or a fatal -errno. The bytes: how many, each, the message. */
static int collective_hand_over(struct shuntd *shuntd, struct collective *collective, const struct stop *stops, size_t count,
                                int which)
{
    const uint16_t number = htole16((uint16_t)count);
    size_t head = 2 + count * STOP_SIZE;
    uint8_t *bytes = malloc(head + collective->size);
    if (bytes == NULL)
        return -ENOMEM;
    memcpy(bytes, &number, 2);
    for (size_t i = 0; i < count; i++)
        collective_put_stop(bytes + 2 + i * STOP_SIZE, &stops[i]);
    memcpy(bytes + head, collective->bytes, collective->size);
    const struct frame_item item = {
        .kind = RPC_COLLECTIVE, .client = collective->id, .bytes = bytes, .size = (uint32_t)(head + collective->size)};
    int code = peers_put(shuntd->peers, stops[0].member, &item);
    free(bytes);
    if (code == 0)
        collective->below[which] = stops[0].member;
    return code;
}

/* One that is no member any more, as the daemon that began this did not know yet, does not keep it from those after it. */
static int collective_hand_over_half(struct shuntd *shuntd, struct collective *collective, const struct stop *stops,
                                     size_t count, int which)
{
    int code = -EHOSTUNREACH;
    for (size_t i = 0; i < count && code == -EHOSTUNREACH; i++) {
        code = collective_hand_over(shuntd, collective, stops + i, count - i, which);
        collective->lost |= code == -EHOSTUNREACH;
    }
    return code == -EHOSTUNREACH ? 0 : code;
}

static int collective_spread(struct shuntd *shuntd, struct collective *collective, const struct stop *stops, size_t count)
{
    size_t half = (count + 1) / 2;
    int code = collective_hand_over_half(shuntd, collective, stops, half, 0);
    return code == 0 ? collective_hand_over_half(shuntd, collective, stops + half, count - half, 1) : code;
}

/* As much of a page as was asked for. */
static size_t collective_room_of(const struct message *message)
{
    uint64_t room = message->type == MESSAGE_LIST ? message->list.room : 0;
    return room < PAGE_LEAST ? PAGE_LEAST : room > PAGE_MAX ? PAGE_MAX : room;
}

static struct collective *collective_start(struct shuntd *shuntd, const struct message *message, const uint8_t *bytes,
                                           size_t size)
{
    struct collective *collective = calloc(1, sizeof *collective + size);
    if (collective == NULL)
        return NULL;
    collective->id = ++shuntd->last_collective;
    collective->type = message->type;
    collective->room = collective_room_of(message);
    collective->limit = PAGE_ALL;
    collective->parent = shuntd->me.number;
    collective->working = true; /* until its part was done */
    collective->size = (uint32_t)size;
    memcpy(collective->bytes, bytes, size);
    list_init(&collective->link);
    list_append(&shuntd->collectives, &collective->all);
    return collective;
}

/* Not members that cannot be reached yet: they know nothing. One that has handed over all names and may end at any moment
 * (`ends`) is told what concerns its node, and passes nothing on. */
static bool collective_reaches(const struct shuntd *shuntd, const struct session_member *member, bool ends)
{
    return member->number != shuntd->me.number && peers_knows(shuntd->peers, member->number) &&
           (member->home == SESSION_GONE) == ends && member->home != SESSION_LOST;
}

static size_t collective_add_members(const struct shuntd *shuntd, bool ends, const uint32_t *expected, struct stop *stops)
{
    size_t count = 0;
    for (size_t i = 0; i < shuntd->session.count; i++) {
        const struct session_member *member = &shuntd->session.members[i];
        if (collective_reaches(shuntd, member, ends))
            stops[count++] =
                (struct stop){.member = member->number, .expected = expected != NULL ? expected[member->number] : 0};
    }
    return count;
}

/* The first of a part of them passes it on to the others: those that end come last. */
static size_t collective_list_members(const struct shuntd *shuntd, uint16_t type, const uint32_t *expected, struct stop *stops)
{
    const size_t count = collective_add_members(shuntd, false, expected, stops);
    return shuntd->collective_handlers->concerns_nodes[type]
               ? count + collective_add_members(shuntd, true, expected, stops + count)
               : count;
}

size_t collective_members(const struct shuntd *shuntd, uint16_t *to)
{
    size_t count = 0;
    for (size_t i = 0; i < shuntd->session.count; i++) {
        const struct session_member *member = &shuntd->session.members[i];
        if (member->number == shuntd->me.number || collective_reaches(shuntd, member, false))
            to[count++] = member->number;
    }
    return count;
}

int collective_begin(struct shuntd *shuntd, const struct message *message, const uint32_t *expected, collective_done *done,
                     void *context)
{
    uint8_t bytes[MESSAGE_SHORT + MESSAGE_TEXT_MAX];
    struct stop stops[SESSION_MEMBERS_MAX];
    struct collective *collective = collective_start(shuntd, message, bytes, message_encode(bytes, sizeof bytes, message));
    if (collective == NULL)
        return -ENOMEM;
    collective->done = done;
    collective->context = context;
    collective->expected = expected != NULL ? expected[shuntd->me.number] : 0;
    int code = collective_spread(shuntd, collective, stops, collective_list_members(shuntd, message->type, expected, stops));
    return code == 0 ? collective_do_part(shuntd, collective) : code;
}

/* What a daemon sent before it said that it has nothing more from before a recovery (membership/recovery.h): names may have
 * been loaded again since. Of what is told by collectives only this says neither epoch nor version. */
static bool collective_is_outdated(const struct shuntd *shuntd, uint16_t member, const struct message *message)
{
    return message->type == MESSAGE_EVICTED && shuntd->route.unreported[member];
}

int collective_receive(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    const uint64_t id = item->client;
    const uint8_t *bytes = item->bytes;
    const size_t size = item->size;
    struct stop stops[SESSION_MEMBERS_MAX];
    struct message message;
    uint16_t count = 0;
    if (size >= 2)
        memcpy(&count, bytes, 2);
    count = le16toh(count);
    size_t head = 2 + (size_t)count * STOP_SIZE;
    if (count == 0 || count > SESSION_MEMBERS_MAX || size < head || id == 0 ||
        message_decode(&message, bytes + head, size - head) != 0 || collective_part_of(shuntd, message.type) == NULL ||
        collective_take_stop(bytes + 2).member != shuntd->me.number) {
        shuntd->counts.malformed++;
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        stops[i] = collective_take_stop(bytes + 2 + i * STOP_SIZE);
    struct collective *collective = collective_start(shuntd, &message, bytes + head, size - head);
    if (collective == NULL)
        return -ENOMEM;
    collective->parent = member;
    collective->parent_id = id;
    collective->expected = stops[0].expected;
    if (collective_is_outdated(shuntd, member, &message))
        return collective_finish(shuntd, collective, 0);
    int code = collective_spread(shuntd, collective, stops + 1, count - 1u);
    return code == 0 ? collective_do_part(shuntd, collective) : code;
}

bool collective_is_under_way(const struct shuntd *shuntd)
{
    return !list_empty(&shuntd->collectives);
}

void collective_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->collectives)) != NULL;)
        collective_destroy(LINK_OF(link, struct collective, all));
}
