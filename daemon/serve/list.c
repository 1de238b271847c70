/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* LIST: the names of a directory for who cannot find them all in this index, a page at a time, gathered from all
 * their homes. In the order of their hashes, so that a name that is there throughout is told exactly once, whatever
 * comes and goes meanwhile. */

#include <errno.h>
#include <stdlib.h>

#include "request/request.h"
#include "serve/cast.h"
#include "serve/anew.h"
#include "serve/serve.h"
#include "wire/page.h"

struct filling {
    char page[REQUEST_TEXT_MAX];
    size_t used;
};

/* 1: it does not fit any more. */
static int put(void *context, uint64_t hash, const char *name, size_t length,
               const struct record_entry *entry)
{
    struct filling *filling = context;
    const struct page_name one = {.hash = hash, .name = name, .length = length, .entry = *entry};
    return page_add(filling->page, sizeof filling->page, &filling->used, &one) ? 0 : 1;
}

/* What each home does. While names are on their way to it, it has to wait for them. */
int cast_list(struct shuntd *shuntd, struct cast *cast, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    struct filling filling = {.used = 0};
    if (shuntd->route.own == 0)
        return 0;
    if (dir == NULL || !dir->complete)
        return MESSAGE_NOT_LOADED;
    if (shuntd->route.missing > 0) {
        cast_wait(cast, dir);
        return CAST_LATER;
    }
    int code = index_list(shuntd->index, dir->id, message->child.ino, put, &filling);
    if (code >= 0)
        cast_page(cast, filling.page, filling.used, code == 1);
    return code < 0 ? code : 0;
}

/* What the node of who asks does. */

struct asked {
    struct link link; /* on shuntd->lists while a home is gone */
    struct message list; /* nothing that is pointed at */
    uint64_t client;
    uint32_t lane, tag;
    uint32_t epoch;
};

static int gather(struct shuntd *, struct asked *);

static int gathered(struct shuntd *shuntd, void *context, const struct cast_end *end)
{
    struct asked *asked = context;
    struct message answer = {.type = MESSAGE_ANSWER,
                             .result = end->result != 0 ? end->result
                                       : end->more      ? MESSAGE_MORE
                                                        : 0,
                             .text = end->page,
                             .text_length = (uint16_t)end->used};
    if (anew_is_due(shuntd)) { /* list_again comes back to it */
        list_append(&shuntd->lists, &asked->link);
        return 0;
    }
    /* Who is lost may be one of those below, and this daemon have begun anew before it heard of that. Or names may have
     * been nowhere while all were asked. */
    if (end->lost || asked->epoch != shuntd->route.epoch)
        return gather(shuntd, asked);
    int code = serve_reply(shuntd, asked->client, asked->lane, asked->tag, &answer);
    free(asked);
    return code;
}

static int gather(struct shuntd *shuntd, struct asked *asked)
{
    asked->epoch = shuntd->route.epoch;
    return cast_begin(shuntd, &asked->list, NULL, gathered, asked);
}

int list_again(struct shuntd *shuntd)
{
    struct link waiting;
    int code = 0;
    list_init(&waiting);
    list_move(&waiting, &shuntd->lists);
    for (struct link *link; code == 0 && (link = list_take(&waiting)) != NULL;)
        code = gather(shuntd, LINK_OF(link, struct asked, link));
    return code;
}

void list_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->lists)) != NULL;)
        free(LINK_OF(link, struct asked, link));
}

int serve_list(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    int how;
    struct home_dir *dir = serve_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    struct asked *asked = malloc(sizeof *asked);
    if (asked == NULL)
        return -ENOMEM;
    *asked = (struct asked){.list = {.type = MESSAGE_LIST, .dir[0] = dir->id, .child = request->message.child},
                            .client = request->client,
                            .lane = request->lane,
                            .tag = request->message.tag};
    int code = gather(shuntd, asked);
    return code == 0 ? SERVE_SILENT : code;
}
