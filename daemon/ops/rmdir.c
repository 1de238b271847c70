/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* RMDIR: a directory is about to be removed. Its coordinator has all its homes frozen; if no name is left there its
 * mirrors and its marker go; then the name of the directory is held, and the client may rmdir it. UNLINKED or ABORT
 * says how that went.
 *
 * Nobody waits for anything while a directory is frozen, or two processes that remove and rename crosswise would wait for each
 * other: where a name is held, the freezes are taken off again, and it is tried once more when the name is free. A process that
 * makes and removes files there without a pause has one held each time: where one of them was there since the first try, the
 * directory was not empty. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sys.h"
#include "coordinator/coordinator.h"
#include "coordinator/dir_times.h"
#include "disk/disk.h"
#include "home/home.h"
#include "ops/ops.h"
#include "peer/peers.h"
#include "reply/reply.h"
#include "rpc/home_rpc.h"
#include "union/mirror.h"

static int rmdir_ask_to_freeze(struct shuntd *, struct operation *);

static int rmdir_release(struct shuntd *shuntd, struct operation *operation, int result)
{
    int code = reply_result(shuntd, operation, result);
    return code == 0 ? home_rpc_abort(shuntd, operation) : code;
}

/* What this node's processes know of a directory that is not loaded is out of date. */
static int rmdir_not_frozen(struct shuntd *shuntd, struct operation *operation, int result)
{
    struct home_dir *child = home_dir_find(shuntd->home, operation->rmdir.child);
    int code = result == MESSAGE_NOT_LOADED && home_dir_is_loaded(child) ? reply_forget_dir(shuntd, child) : 0;
    return code == 0 ? rmdir_release(shuntd, operation, result) : code;
}

/* The claim is released: once more. */
static int rmdir_is_free(struct shuntd *shuntd, struct operation *operation, const struct name_answer *unused)
{
    return rmdir_ask_to_freeze(shuntd, operation);
}

static int rmdir_held(struct shuntd *shuntd, struct operation *operation, const struct name_answer *answer)
{
    if (answer->result != MESSAGE_BUSY) {
        operation->place = operation->before;
        return reply_result(shuntd, operation, 0);
    }
    operation->rmdir.step = RMDIR_CLAIMS;
    int code = coordinator_thaw(shuntd, operation->rmdir.child);
    return code == 0 ? home_rpc_request(shuntd, operation, NAME_LOOKUP, 0, NULL, rmdir_is_free) : code;
}

static int rmdir_is_frozen(struct shuntd *shuntd, const struct coordinator_call *coordinator_call, const struct message *answer)
{
    static const struct record_entry dying = {.state = RECORD_DYING};
    struct operation *operation = operation_by_id(shuntd->home, coordinator_call->operation);
    if (operation == NULL)
        return answer->result == 0 ? coordinator_thaw(shuntd, answer->dir) : 0;
    operation->rmdir.step = answer->result == 0 ? RMDIR_FROZEN : RMDIR_CLAIMS;
    if (operation_is_abandoned(operation))
        return home_rpc_abort(shuntd, operation);
    if (!operation_is_frozen(operation))
        return rmdir_not_frozen(shuntd, operation, answer->result);
    return home_rpc_request(shuntd, operation, NAME_CLAIM, NAME_EVEN_ABSENT | NAME_NONBLOCK, &dying, rmdir_held);
}

static int rmdir_ask_to_freeze(struct shuntd *shuntd, struct operation *operation)
{
    const struct message freeze = {.type = MESSAGE_FREEZE, .dir = operation->rmdir.child};
    const struct coordinator_call coordinator_call = {.operation = operation->id};
    operation->rmdir.step = RMDIR_FREEZES;
    peers_urge_all(shuntd->peers); /* what was removed there is to be gone for its homes when they are asked */
    return coordinator_submit(shuntd, &freeze, rmdir_is_frozen, &coordinator_call);
}

int ops_rmdir(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    int how;
    struct home_dir *dir = reply_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    struct operation *operation = operation_find(shuntd->home, dir->id, message->name.text, message->name.length);
    if (operation != NULL)
        return reply_block(shuntd, &operation->blocked, request);
    operation = operation_begin(shuntd->home, OPERATION_RMDIR, dir, message->name.text, message->name.length, request);
    if (operation == NULL)
        return -ENOMEM;
    operation->rmdir.child = message->rmdir.child;
    operation_await(shuntd->home, operation->id); /* whatever asks for the directory waits, on any node */
    int code = rmdir_ask_to_freeze(shuntd, operation);
    return code == 0 ? REPLY_SILENT : code;
}
