/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What daemons tell each other without being asked: a leaf was looked into, a directory is idle, somebody waits. */

#include "ops/notification.h"

#include "base/hook.h"
#include "coordinator/coordinator.h"
#include "coordinator/delegation.h"
#include "coordinator/dir_times.h"
#include "home/home.h"
#include "home/route.h"
#include "prefetch/grant.h"
#include "prefetch/prefetch.h"
#include "rpc/home_rpc.h"
#include "rpc/peer_rpc.h"
#include "rpc/receive.h"

/* Its process is at work on it; or has not asked for it yet: then the waiting request goes first. Or it has ended, and word of
 * that has not left yet. */
static int notification_heed_awaited(struct shuntd *shuntd, uint16_t member, uint64_t id)
{
    struct operation *operation = operation_by_id(shuntd->home, id);
    int code = operation != NULL ? grant_settle(shuntd, operation) : 0;
    operation = operation_by_id(shuntd->home, id);
    operation_await(shuntd->home, id);
    if (operation == NULL)
        peers_urge(shuntd->peers, member);
    if (code != 0 || operation == NULL || !operation->was_prefetched ||
        (!operation_is_prefetched(operation) && BROKEN("ahead-unclaimed")))
        return code;
    return operation_is_prefetched(operation) ? prefetch_give_back(shuntd, operation) : home_rpc_requested(shuntd, operation);
}

static int notification_heed(struct shuntd *shuntd, uint16_t member, uint64_t operation, const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    if (message->type == MESSAGE_IDLE)
        return coordinator_dir_idle(shuntd, message->dir);
    if (message->type == MESSAGE_RECALL)
        return delegation_recalled(shuntd, member, message->dir, message->delegation.number);
    if (message->type == MESSAGE_AWAITED)
        return notification_heed_awaited(shuntd, member, operation);
    if (message->type == MESSAGE_NODES && dir != NULL)
        dir->nodes = message->nodes.count;
    if (message->type != MESSAGE_LEAF_VISITED || dir == NULL)
        return 0;
    home_leaf_note_visit(&dir->leaves, message->leaf.leaf);
    return prefetch_leave_leaf(shuntd, dir, message->leaf.leaf);
}

int notification_take(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct message message;
    if (message_decode(&message, item->bytes, item->size) != 0)
        return rpc_malformed(shuntd);
    if (message.type == MESSAGE_TIMES)
        return dir_times_take_item(shuntd, member, item, &message);
    return notification_heed(shuntd, member, item->client, &message);
}

static int notification_tell(struct shuntd *shuntd, const struct home_notification *notification)
{
    static const uint16_t types[] = {
        [NOTIFY_LEAF_VISITED] = MESSAGE_LEAF_VISITED, [NOTIFY_IDLE] = MESSAGE_IDLE, [NOTIFY_AWAITED] = MESSAGE_AWAITED};
    if (notification->kind == NOTIFY_UNCLAIMED)
        return delegation_continue(shuntd, notification->dir);
    const struct message message = {
        .type = types[notification->kind], .dir = notification->dir, .leaf.leaf = notification->leaf};
    uint16_t member = notification->kind == NOTIFY_IDLE           ? route_of_dir(&shuntd->route, notification->dir)
                      : notification->kind == NOTIFY_LEAF_VISITED ? rpc_member_of(shuntd, notification->branch)
                                                                  : notification->member;
    if (member == shuntd->me.number)
        return notification_heed(shuntd, member, notification->operation, &message);
    return member != 0 ? rpc_message(shuntd, member, RPC_NOTIFY, notification->operation, &message) : 0;
}

int notification_tell_all(struct shuntd *shuntd)
{
    struct home_notification notification;
    int code = 0;
    while (code == 0 && home_next_notification(shuntd->home, &notification))
        code = notification_tell(shuntd, &notification);
    return code;
}
