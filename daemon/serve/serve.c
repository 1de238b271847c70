/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "serve/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "serve/queue.h"
#include "serve/relay.h"

static serve_operation *const operations[MESSAGE_TYPES] = {
    [MESSAGE_LOAD] = serve_load,         [MESSAGE_LOOKUP] = serve_lookup,
    [MESSAGE_RESERVE] = serve_reserve,   [MESSAGE_CONFIRM] = serve_confirm,
    [MESSAGE_WITHDRAW] = serve_withdraw, [MESSAGE_ADOPT] = serve_adopt,
    [MESSAGE_VANISHED] = serve_vanished, [MESSAGE_REMOVE] = serve_remove,
    [MESSAGE_GONE] = serve_gone,         [MESSAGE_RENAME] = serve_rename,
    [MESSAGE_RENAMED] = serve_renamed,   [MESSAGE_CLOSE] = serve_close,
    [MESSAGE_PROMOTE] = serve_promote,   [MESSAGE_FOLLOW] = serve_follow,
    [MESSAGE_SETTLE] = serve_settle,     [MESSAGE_SYNC] = serve_sync,
    [MESSAGE_STATUS] = serve_status,     [MESSAGE_RETIRE] = serve_retire,
    [MESSAGE_WATCH] = serve_watch,       [MESSAGE_PLACE] = serve_place_of,
    [MESSAGE_LIST] = serve_list,
};

int serve(struct shuntd *shuntd, struct listen_request *request)
{
    struct message answer = {.type = MESSAGE_ANSWER};
    if (relay_is_needed(shuntd) && relay_may_be(request->message.type))
        return relay_request(shuntd, request);
    serve_operation *operation = operations[request->message.type];
    if (operation == NULL) {
        shuntd->counts.malformed++;
        return 0;
    }
    HOOK("request-served");
    int how = operation(shuntd, request, &answer);
    if (how == SERVE_ANSWER)
        return serve_answer(shuntd, request, &answer);
    return how < 0 ? how : 0;
}

/* An answer as it waits: its places are copied along. */
int serve_answer(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    answer->tag = request->message.tag;
    struct queued *queued = queue_add(shuntd->queue);
    if (queued == NULL)
        return -ENOMEM;
    queued->lane = request->lane;
    queued->client = request->client;
    queued->size = (uint32_t)message_encode(queued->bytes, sizeof queued->bytes, answer);
    return queued->size > 0 ? 0 : -EINVAL;
}

int serve_flush(struct shuntd *shuntd)
{
    struct message answer;
    int code = 0;
    for (size_t i = 0; i < shuntd->queue->count && code == 0; i++) {
        struct queued *queued = &shuntd->queue->answers[i];
        if (listen_member(queued->client) != 0)
            code = relay_answer(shuntd, queued->client, queued->lane, queued->bytes, queued->size);
        else if (message_decode(&answer, queued->bytes, queued->size) == 0)
            listen_answer(shuntd->listen, queued->lane, queued->client, &answer);
    }
    shuntd->queue->count = 0;
    return code;
}

int serve_park(struct shuntd *shuntd, struct link *waiting, const struct listen_request *request)
{
    int code = home_park(shuntd, waiting, request);
    HOOK("request-parked");
    return code == 0 ? SERVE_PARKED : code;
}

static bool touch(struct shuntd *shuntd, const struct listen_request *request, struct home_dir *dir, int *how)
{
    struct home_share *share = home_share(dir, serve_branch(shuntd, request->client));
    if (share != NULL)
        share->touched = true;
    *how = -ENOMEM;
    return share != NULL;
}

struct home_dir *serve_dir(struct shuntd *shuntd, const struct listen_request *request, int which,
                           struct message *answer, int *how)
{
    struct home_dir *dir = home_dir_find(shuntd->home, request->message.dir[which]);
    if (dir != NULL &&
        ((dir->closing && !BROKEN("births-while-closing")) || (dir->working && !home_dir_is_loaded(dir)))) {
        *how = serve_park(shuntd, &dir->waiting, request);
        return NULL;
    }
    if (home_dir_is_loaded(dir) && touch(shuntd, request, dir, how))
        return dir;
    if (home_dir_is_loaded(dir))
        return NULL;
    answer->result = MESSAGE_NOT_LOADED;
    *how = SERVE_ANSWER;
    return NULL;
}

void serve_place(const struct shuntd *shuntd, const struct home_dir *dir, const struct record_entry *entry,
                 char *to, struct message *answer, int which)
{
    if (entry->branch == 0)
        return;
    int length = snprintf(to, SERVE_PLACE_MAX, "%s/%s/%u", shuntd->root.branches[entry->branch - 1],
                          dir->record.mirror, entry->leaf);
    answer->name[which] = to;
    answer->name_length[which] = (uint16_t)length;
}

int serve_path(const struct shuntd *shuntd, const struct home_dir *dir, const struct record_entry *entry,
               const char *name, size_t length, char to[PATH_MAX])
{
    struct text t;
    text_init(&t, to, PATH_MAX);
    if (entry->branch != 0) {
        layout_leaf(&t, shuntd->root.path, shuntd->root.branches[entry->branch - 1], dir->record.mirror,
                    entry->leaf);
    } else {
        text_add(&t, shuntd->root.path);
        text_add(&t, "/");
        text_add(&t, dir->path);
    }
    text_add(&t, "/");
    text_bytes(&t, name, length);
    return text_ok(&t) ? 0 : -ENAMETOOLONG;
}
