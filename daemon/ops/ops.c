/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "ops/ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "home/oom_reserve.h"
#include "prefetch/prefetch.h"
#include "prefetch/grant.h"
#include "reply/answer_queue.h"

static serve_operation *const operations[MESSAGE_TYPES] = {
    [MESSAGE_LOAD] = serve_load,
    [MESSAGE_LOOKUP] = serve_lookup,
    [MESSAGE_RESERVE] = serve_reserve,
    [MESSAGE_CONFIRM] = serve_confirm,
    [MESSAGE_WITHDRAW] = serve_withdraw,
    [MESSAGE_ADOPT] = serve_adopt,
    [MESSAGE_VANISHED] = serve_vanished,
    [MESSAGE_REMOVE] = serve_remove,
    [MESSAGE_GONE] = serve_gone,
    [MESSAGE_RENAME] = serve_rename,
    [MESSAGE_RENAMED] = serve_renamed,
    [MESSAGE_CLOSE] = serve_close,
    [MESSAGE_PROMOTE] = serve_promote,
    [MESSAGE_FOLLOW] = serve_about_directory,
    [MESSAGE_SETTLE] = serve_about_directory,
    [MESSAGE_SYNC] = serve_about_directory,
    [MESSAGE_STATUS] = serve_status,
    [MESSAGE_PING] = serve_ping,
    [MESSAGE_WATCH] = serve_about_directory,
    [MESSAGE_PLACE] = serve_place_of,
    [MESSAGE_LIST] = serve_list,
    [MESSAGE_LOOKED] = serve_looked,
    [MESSAGE_STOP] = serve_stop,
};

/* What is to be heard in any case: how it went, and what is asked of the daemon itself. */
static const bool is_heard[MESSAGE_TYPES] = {
    [MESSAGE_CONFIRM] = true, [MESSAGE_WITHDRAW] = true, [MESSAGE_GONE] = true, [MESSAGE_RENAMED] = true,
    [MESSAGE_LOOKED] = true,  [MESSAGE_STATUS] = true,   [MESSAGE_STOP] = true, [MESSAGE_PING] = true,
};

int serve(struct shuntd *shuntd, struct listen_request *request)
{
    struct message answer = {.type = MESSAGE_ANSWER};
    HOOK("request-served");
    serve_operation *operation = operations[request->message.type];
    if (operation == NULL) {
        shuntd->counts.malformed++;
        return 0;
    }
    if (!spare_is_there() && !is_heard[request->message.type]) {
        answer.result = -ENOMEM;
        return serve_answer(shuntd, request, &answer);
    }
    int how = offer_see_lane(shuntd, request->lane);
    if (how == 0)
        how = ahead_make_way(shuntd, &request->message);
    if (how == 0)
        how = operation(shuntd, request, &answer);
    if (how == SERVE_ANSWER)
        return serve_answer(shuntd, request, &answer);
    return how < 0 ? how : 0;
}

/* An answer as it waits: its places are copied along. */
int serve_reply(struct shuntd *shuntd, uint64_t client, uint32_t lane, uint32_t tag, struct message *answer)
{
    answer->tag = tag;
    struct queued *queued = queue_add(shuntd->queue);
    if (queued == NULL)
        return -ENOMEM;
    queued->lane = lane;
    queued->client = client;
    queued->tag = tag;
    queued->size = (uint32_t)message_encode(queued->bytes, sizeof queued->bytes, answer);
    return queued->size > 0 ? 0 : -EINVAL;
}

int serve_answer(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    return serve_reply(shuntd, request->client, request->lane, request->message.tag, answer);
}

int serve_tell_place(struct shuntd *shuntd, const struct flight *flight, const struct record_entry *entry, int result)
{
    struct message answer = {.type = MESSAGE_ANSWER, .result = result, .entry[0] = *entry};
    char place[SERVE_PLACE_MAX];
    serve_place(shuntd, flight->dir, entry, place, &answer, 0);
    return serve_reply(shuntd, flight->client, flight->lane, flight->tag, &answer);
}

int serve_tell_result(struct shuntd *shuntd, const struct flight *flight, int result)
{
    struct message answer = {.type = MESSAGE_ANSWER, .result = result};
    return serve_reply(shuntd, flight->client, flight->lane, flight->tag, &answer);
}

/* What an answer began that nobody has taken is settled with the next tick. */
static void deliver(struct shuntd *shuntd, const struct queued *queued)
{
    struct message answer;
    if (listen_answer(shuntd->listen, queued->lane, queued->client, queued->tag, queued->bytes, queued->size))
        return;
    flight_give_up(shuntd->home, queued->client, queued->lane, queued->tag);
    if (message_decode(&answer, queued->bytes, queued->size) == 0 && answer.flags & MESSAGE_BAY)
        listen_take_back_page(shuntd->listen, queued->client, (int)answer.child.birth);
}

void serve_flush(struct shuntd *shuntd)
{
    for (size_t i = 0; i < shuntd->queue->count; i++)
        deliver(shuntd, &shuntd->queue->answers[i]);
    shuntd->queue->count = 0;
    listen_wake(shuntd->listen);
}

int serve_park(struct shuntd *shuntd, struct link *waiting, const struct listen_request *request)
{
    HOOK("request-parked");
    int code = home_park(shuntd, waiting, request);
    return code == 0 ? SERVE_PARKED : code;
}

struct home_dir *serve_dir(struct shuntd *shuntd, const struct listen_request *request, int which, struct message *answer,
                           int *how)
{
    struct home_dir *dir = home_dir_find(shuntd->home, request->message.dir[which]);
    if (home_dir_is_loaded(dir))
        return dir;
    if (dir != NULL && home_dir_is_busy(dir)) {
        *how = serve_park(shuntd, &dir->waiting, request);
        return NULL;
    }
    answer->result = MESSAGE_NOT_LOADED;
    *how = SERVE_ANSWER;
    return NULL;
}

int serve_forget(struct shuntd *shuntd, struct home_dir *dir)
{
    int code = index_forget_dir(shuntd->index, dir->id);
    dir->record.flags &= ~(uint32_t)RECORD_LOADED;
    return code;
}

void serve_place(const struct shuntd *shuntd, const struct home_dir *dir, const struct record_entry *entry, char *to,
                 struct message *answer, int which)
{
    if (entry->branch == 0)
        return;
    struct text t;
    text_init(&t, to, SERVE_PLACE_MAX);
    text_add(&t, shuntd->root.branches[entry->branch - 1]);
    text_add(&t, "/");
    text_add(&t, dir->record.mirror);
    text_add(&t, "/");
    text_number(&t, entry->leaf, 10);
    answer->name[which] = to;
    answer->name_length[which] = (uint16_t)t.length;
}

int serve_path(const struct shuntd *shuntd, const struct home_dir *dir, const struct record_entry *entry, const char *name,
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
