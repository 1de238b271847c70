/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "ops/ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "coordinator/dir_times.h"
#include "coordinator/load.h"
#include "home/oom_reserve.h"
#include "ops/notification.h"
#include "prefetch/grant.h"
#include "prefetch/prefetch.h"
#include "reply/reply.h"
#include "rpc/collective.h"
#include "rpc/home_rpc.h"

static ops_function *const operations[MESSAGE_TYPES] = {
    [MESSAGE_LOAD] = load_request,
    [MESSAGE_LOOKUP] = ops_lookup,
    [MESSAGE_CREATE] = ops_create,
    [MESSAGE_COMMIT] = ops_commit,
    [MESSAGE_ABORT] = ops_abort,
    [MESSAGE_ADOPT] = ops_adopt,
    [MESSAGE_VANISHED] = ops_vanished,
    [MESSAGE_UNLINK] = ops_unlink,
    [MESSAGE_UNLINKED] = ops_unlinked,
    [MESSAGE_RENAME] = ops_rename,
    [MESSAGE_RENAMED] = ops_renamed,
    [MESSAGE_RMDIR] = ops_rmdir,
    [MESSAGE_PROMOTE] = ops_promote,
    [MESSAGE_ATTRIBUTES] = ops_about_directory,
    [MESSAGE_SETTLE] = ops_about_directory,
    [MESSAGE_SYNC] = ops_about_directory,
    [MESSAGE_STATUS] = ops_status,
    [MESSAGE_PING] = ops_ping,
    [MESSAGE_WATCH] = ops_about_directory,
    [MESSAGE_PLACE] = ops_place_of,
    [MESSAGE_LIST] = ops_list,
    [MESSAGE_VISITED] = ops_looked,
    [MESSAGE_STOP] = ops_stop,
};

/* What is to be heard in any case: how it went, and what is asked of the daemon itself. */
static const bool is_heard[MESSAGE_TYPES] = {
    [MESSAGE_COMMIT] = true,  [MESSAGE_ABORT] = true,  [MESSAGE_UNLINKED] = true, [MESSAGE_RENAMED] = true,
    [MESSAGE_VISITED] = true, [MESSAGE_STATUS] = true, [MESSAGE_STOP] = true,     [MESSAGE_PING] = true,
};

int ops_serve(struct shuntd *shuntd, struct listen_request *request)
{
    struct message answer = {.type = message_answer_type(request->message.type)};
    HOOK("request-served");
    ops_function *operation = operations[request->message.type];
    if (operation == NULL) {
        shuntd->counts.malformed++;
        return 0;
    }
    if (!oom_reserve_is_there() && !is_heard[request->message.type]) {
        answer.result = -ENOMEM;
        return reply_answer(shuntd, request, &answer);
    }
    int how = grant_see_qp(shuntd, request->qp);
    if (how == 0)
        how = prefetch_make_way(shuntd, &request->message);
    if (how == 0)
        how = operation(shuntd, request, &answer);
    if (how == REPLY_ANSWER)
        return reply_answer(shuntd, request, &answer);
    return how < 0 ? how : 0;
}

int ops_resume(struct shuntd *shuntd)
{
    int code = home_rpc_answer_waiting(shuntd);
    if (code == 0)
        code = notification_tell_all(shuntd);
    return code == 0 ? collective_resume(shuntd) : code;
}
