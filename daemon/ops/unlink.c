/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* UNLINK, PROMOTE: a name is held while its owner takes the file away or to another place. */

#include <errno.h>

#include "coordinator/dir_times.h"
#include "home/home.h"
#include "ops/completion.h"
#include "ops/ops.h"
#include "prefetch/prefetch.h"
#include "reply/reply.h"
#include "rpc/home_rpc.h"

static int unlink_nothing_there(struct shuntd *shuntd, struct operation *operation)
{
    int code = reply_result(shuntd, operation, MESSAGE_ABSENT);
    operation_end(shuntd->home, operation);
    return code;
}

int unlink_begins(struct shuntd *shuntd, struct operation *operation)
{
    operation->place = operation->before;
    shuntd->counts.unlinks++;
    int code = operation->before.branch != 0 ? operation_note_change(shuntd->home, operation) : 0;
    if (code == 0 && operation->was_prefetched) /* to its home that was no look yet */
        code = home_report_visit(shuntd->home, operation->dir, &operation->before, shuntd->branch);
    return code == 0 ? prefetch_follow(shuntd, operation) : code;
}

/* The name is there, and now it is this client's to work on. */
static int unlink_held(struct shuntd *shuntd, struct operation *operation, const struct name_answer *answer)
{
    int code = 0;
    if (answer->result == MESSAGE_ABSENT)
        return unlink_nothing_there(shuntd, operation);
    if (operation->kind == OPERATION_UNLINK) {
        code = unlink_begins(shuntd, operation);
    } else {
        operation->place = operation->before;
        operation->place.branch = 0;
        operation->place.leaf = 0;
    }
    return code == 0 ? reply_place(shuntd, operation, &operation->before, 0) : code;
}

static int unlink_hold(struct shuntd *shuntd, enum operation_kind kind, const struct listen_request *request,
                       const struct record_entry *meanwhile, struct message *answer)
{
    const struct message *message = &request->message;
    bool claimed = false;
    int how, code = 0;
    struct home_dir *dir = reply_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    if (kind == OPERATION_UNLINK)
        code = prefetch_attach_request(shuntd, request, kind, true, &claimed);
    if (code != 0 || claimed)
        return reply_silently(code);
    struct operation *operation = operation_find(shuntd->home, dir->id, message->name.text, message->name.length);
    if (operation != NULL)
        return reply_block(shuntd, &operation->blocked, request);
    operation = operation_begin(shuntd->home, kind, dir, message->name.text, message->name.length, request);
    return reply_silently(operation != NULL ? home_rpc_request(shuntd, operation, NAME_CLAIM, 0, meanwhile, unlink_held)
                                            : -ENOMEM);
}

int ops_unlink(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    static const struct record_entry dying = {.state = RECORD_DYING};
    return unlink_hold(shuntd, OPERATION_UNLINK, request, &dying, answer);
}

int ops_promote(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    return unlink_hold(shuntd, OPERATION_PROMOTE, request, NULL, answer);
}
