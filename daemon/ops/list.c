/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* LIST: the names of a directory that are not in this index, a page at a time, gathered from their homes. In the order
 * of their hashes, so that a name that is there throughout is told exactly once, whatever comes and goes meanwhile.
 * The process merges those that are in this index itself (names/names.c). */

#include <errno.h>
#include <stdlib.h>

#include "coordinator/dir_times.h"
#include "home/home.h"
#include "home/route.h"
#include "membership/roles.h"
#include "ops/ops.h"
#include "reply/reply.h"
#include "request/request.h"
#include "rpc/collective.h"
#include "wire/page.h"

#define ROOM_MAX (1u << 20) /* a buffer for names that is larger is not filled by one page anyway */

struct filling {
    const struct union_root *root;
    uint16_t branch; /* the last one's number, and its word */
    uint32_t word;
    char page[PAGE_MAX];
    size_t room, used;
    uint64_t limit;
};

static uint32_t list_word_of(struct filling *filling, uint16_t branch)
{
    if (branch != 0 && branch != filling->branch)
        filling->word = record_branch_word(filling->root->branches[branch - 1]);
    filling->branch = branch != 0 ? branch : filling->branch;
    return branch != 0 ? filling->word : 0;
}

/* 1: it is after the limit, or does not fit any more. */
static int list_put(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct filling *filling = context;
    const struct page_name one = {
        .hash = hash, .name = name, .length = length, .branch = list_word_of(filling, entry->branch), .entry = *entry};
    if (hash > filling->limit)
        return 1;
    if (page_add(filling->page, filling->room, &filling->used, &one))
        return 0;
    filling->limit = hash - 1;
    return 1;
}

/* What each home does. While names are on their way to it, it has to wait for them: also the home on the node that asks, which
 * adds none. While a home is gone its names are told by nobody: the daemon that asks may have joined in its place, and not know
 * that the directory is read again soon. */
int list_part(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    struct filling filling;
    if (shuntd->route.own == 0)
        return 0;
    if (dir == NULL || !dir->complete)
        return MESSAGE_NOT_LOADED;
    dir->use.last = shuntd->now;
    if (shuntd->route.missing > 0 || route_lacks_home(&shuntd->route, &shuntd->session)) {
        collective_wait(collective, dir);
        return COLLECTIVE_LATER;
    }
    /* What may be made by now, or not: the claimants of such names say so of all at once, so that no one has to look for each.
     * Those that come meanwhile are looked for, or listings would wait for ever where many are at work. */
    int code = collective_has_waited(collective) ? 0 : home_drain_prefetched(shuntd->home, dir);
    if (code == 1)
        collective_wait(collective, dir);
    if (code != 0)
        return code == 1 ? COLLECTIVE_LATER : code;
    filling.root = &shuntd->root;
    filling.branch = 0;
    filling.used = 0;
    filling.room = collective_room(collective);
    filling.limit = message->list.to;
    code = collective_is_mine(collective) && dir->spill == NULL
               ? 0
               : home_list_entries(shuntd->home, dir->id, message->list.from, list_put, &filling);
    return code < 0 ? code : collective_page(shuntd, collective, filling.page, filling.used, filling.limit);
}

/* On the node that asks. */

struct asked {
    struct link link;    /* on shuntd->lists while a home is gone */
    struct message list; /* nothing that is pointed at */
    uint64_t client;
    uint32_t qp, tag;
    uint32_t epoch;
};

static int list_gather(struct shuntd *, struct asked *);

/* In a bulk buffer, or as much of it as fits without. */
static int list_answer_with_page(struct shuntd *shuntd, const struct asked *asked, const struct collective_end *end)
{
    const struct page_part parts[2] = {{end->page, end->used, end->limit}, {NULL, 0, PAGE_ALL}};
    struct message answer = {.type = MESSAGE_TEXT_ANSWER, .result = end->result};
    char page[REQUEST_TEXT_MAX];
    size_t used = 0;
    int bulk = end->used > sizeof page ? listen_put_page(shuntd->listen, asked->client, end->page, end->used) : -1;
    answer.text_answer.limit = bulk >= 0 ? end->limit : page_merge(page, sizeof page, &used, parts);
    if (bulk >= 0) {
        answer.flags = MESSAGE_BULK;
        answer.text_answer.bulk = (uint32_t)bulk;
    }
    answer.text_answer.text = message_text(page, used);
    return reply_send(shuntd, asked->client, asked->qp, asked->tag, &answer);
}

static int list_gathered(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct asked *asked = context;
    if (route_lacks_home(&shuntd->route, &shuntd->session)) { /* list_again comes back to it */
        list_append(&shuntd->blocked_lists, &asked->link);
        return 0;
    }
    /* The lost member may be below in the tree, and this daemon may have begun recovery before it heard of that. Or names may
     * have been nowhere while all were asked. */
    if (end->lost || asked->epoch != shuntd->route.epoch)
        return list_gather(shuntd, asked);
    int code = list_answer_with_page(shuntd, asked, end);
    free(asked);
    return code;
}

/* How far that many bytes of names go in this index. */
struct measuring {
    size_t bytes;
    uint64_t limit;
};

static int list_measure(void *context, uint64_t hash, const char *name, size_t length, const struct record_entry *entry)
{
    struct measuring *measuring = context;
    if (measuring->bytes < PAGE_NAME_FIXED + length) {
        measuring->limit = hash;
        return 1;
    }
    measuring->bytes -= PAGE_NAME_FIXED + length;
    return 0;
}

/* Names are spread evenly over their homes: how far the page will go that many others fill together can be seen from
 * the names that are here. So none of them looks further. */
static int list_set_limit(struct shuntd *shuntd, struct message *list)
{
    uint16_t homes[SESSION_MEMBERS_MAX];
    uint32_t own = shuntd->route.own, others = RECORD_SHARDS - own;
    const struct home_dir *dir = home_dir_find(shuntd->home, list->dir);
    list->list.to = PAGE_ALL;
    if (own == 0 || others == 0 || roles_now(&shuntd->session, homes) <= 2 || dir == NULL || dir->spill != NULL)
        return 0;
    struct measuring measuring = {.bytes = list->list.room * own / others, .limit = PAGE_ALL};
    int code = index_list(shuntd->index, list->dir, list->list.from, list_measure, &measuring);
    list->list.to = measuring.limit;
    return code < 0 ? code : 0;
}

static int list_gather(struct shuntd *shuntd, struct asked *asked)
{
    asked->epoch = shuntd->route.epoch;
    int code = list_set_limit(shuntd, &asked->list);
    if (code != 0)
        return code;
    return collective_begin(shuntd, &asked->list, NULL, list_gathered, asked);
}

int list_again(struct shuntd *shuntd)
{
    struct link waiting;
    int code = 0;
    list_init(&waiting);
    list_move(&waiting, &shuntd->blocked_lists);
    for (struct link *link; code == 0 && (link = list_take(&waiting)) != NULL;)
        code = list_gather(shuntd, LINK_OF(link, struct asked, link));
    return code;
}

void list_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->blocked_lists)) != NULL;)
        free(LINK_OF(link, struct asked, link));
}

/* The share of the room that the client has of those that are not in the index. */
static uint64_t list_room_for_others(const struct shuntd *shuntd, const struct home_dir *dir,
                                     const struct listen_request *request)
{
    uint64_t room = request->message.list.room < ROOM_MAX ? request->message.list.room : ROOM_MAX;
    if (dir->spill == NULL)
        room = room * (RECORD_SHARDS - shuntd->route.own) / RECORD_SHARDS;
    return room < PAGE_LEAST ? PAGE_LEAST : room > PAGE_MAX ? PAGE_MAX : room;
}

int ops_list(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    int how;
    struct home_dir *dir = reply_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    struct asked *asked = malloc(sizeof *asked);
    if (asked == NULL)
        return -ENOMEM;
    *asked = (struct asked){
        .list = {.type = MESSAGE_LIST,
                 .dir = dir->id,
                 .list = {.from = request->message.list.from, .room = list_room_for_others(shuntd, dir, request)}},
        .client = request->client,
        .qp = request->qp,
        .tag = request->message.tag};
    int code = list_gather(shuntd, asked);
    return code == 0 ? REPLY_SILENT : code;
}
