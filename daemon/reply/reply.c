/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "reply/reply.h"

#include <errno.h>
#include <string.h>

#include "base/hook.h"
#include "base/text.h"
#include "home/home.h"
#include "reply/answer_queue.h"
#include "union/layout.h"

/* An answer as it waits: its places are copied along. */
int reply_send(struct shuntd *shuntd, uint64_t client, uint32_t qp, uint32_t tag, struct message *answer)
{
    answer->tag = tag;
    struct queued *queued = answer_queue_add(shuntd->answers);
    if (queued == NULL)
        return -ENOMEM;
    queued->qp = qp;
    queued->client = client;
    queued->tag = tag;
    queued->size = (uint32_t)message_encode(queued->bytes, sizeof queued->bytes, answer);
    return queued->size > 0 ? 0 : -EINVAL;
}

int reply_answer(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    return reply_send(shuntd, request->client, request->qp, request->message.tag, answer);
}

int reply_place(struct shuntd *shuntd, const struct operation *operation, const struct record_entry *entry, int result)
{
    struct message answer = {.type = MESSAGE_ANSWER, .result = result, .answer.entry[0] = *entry};
    char place[REPLY_PLACE_MAX];
    reply_put_place(shuntd, operation->dir, entry, place, &answer, 0);
    return reply_send(shuntd, operation->client, operation->qp, operation->tag, &answer);
}

int reply_result(struct shuntd *shuntd, const struct operation *operation, int result)
{
    struct message answer = {.type = MESSAGE_ANSWER, .result = result};
    return reply_send(shuntd, operation->client, operation->qp, operation->tag, &answer);
}

/* What an answer began that nobody has taken is settled with the next tick. */
static void reply_deliver(struct shuntd *shuntd, const struct queued *queued)
{
    struct message answer;
    if (listen_answer(shuntd->listen, queued->qp, queued->client, queued->tag, queued->bytes, queued->size))
        return;
    operation_give_up(shuntd->home, queued->client, queued->qp, queued->tag);
    if (message_decode(&answer, queued->bytes, queued->size) == 0 && answer.flags & MESSAGE_BULK)
        listen_take_back_page(shuntd->listen, queued->client, (int)answer.text_answer.bulk);
}

void reply_flush(struct shuntd *shuntd)
{
    for (size_t i = 0; i < shuntd->answers->count; i++)
        reply_deliver(shuntd, &shuntd->answers->answers[i]);
    shuntd->answers->count = 0;
    listen_wake(shuntd->listen);
}

int reply_block(struct shuntd *shuntd, struct link *waiting, const struct listen_request *request)
{
    HOOK("request-blocked");
    int code = home_block(shuntd->home, waiting, request);
    return code == 0 ? REPLY_BLOCKED : code;
}

struct home_dir *reply_dir(struct shuntd *shuntd, const struct listen_request *request, int which, struct message *answer,
                           int *how)
{
    const struct message *message = &request->message;
    struct home_dir *dir = home_dir_find(shuntd->home, which == 0 ? message->dir : message->rename.to_dir);
    if (home_dir_is_loaded(dir)) {
        dir->use.last = shuntd->now;
        return dir;
    }
    if (dir != NULL && home_dir_is_busy(dir)) {
        *how = reply_block(shuntd, &dir->blocked, request);
        return NULL;
    }
    answer->result = MESSAGE_NOT_LOADED;
    *how = REPLY_ANSWER;
    return NULL;
}

int reply_forget_dir(struct shuntd *shuntd, struct home_dir *dir)
{
    int code = index_forget_dir(shuntd->index, dir->id);
    dir->record.flags &= ~(uint32_t)RECORD_LOADED;
    return code;
}

void reply_put_place(const struct shuntd *shuntd, const struct home_dir *dir, const struct record_entry *entry, char *to,
                     struct message *answer, int which)
{
    if (entry->branch == 0)
        return;
    struct text t;
    text_init(&t, to, REPLY_PLACE_MAX);
    text_add(&t, shuntd->root.branches[entry->branch - 1]);
    text_add(&t, "/");
    text_add(&t, dir->record.mirror);
    text_add(&t, "/");
    text_number(&t, entry->leaf, 10);
    answer->answer.place[which] = message_text(to, t.length);
}

int reply_path(const struct shuntd *shuntd, const struct home_dir *dir, const struct record_entry *entry, const char *name,
               size_t length, char to[PATH_MAX])
{
    struct text t;
    text_init(&t, to, PATH_MAX);
    if (entry->branch != 0) {
        layout_leaf(&t, shuntd->root.path, shuntd->root.branches[entry->branch - 1], dir->record.mirror, entry->leaf);
    } else {
        text_add(&t, shuntd->root.path);
        text_add(&t, "/");
        text_add(&t, dir->path);
    }
    text_add(&t, "/");
    text_bytes(&t, name, length);
    return text_ok(&t) ? 0 : -ENAMETOOLONG;
}
