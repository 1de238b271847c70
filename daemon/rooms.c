/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "rooms.h"

#include "coordinator/coordinator.h"
#include "coordinator/dir_times.h"
#include "coordinator/evict.h"
#include "coordinator/hand_out.h"
#include "coordinator/load.h"
#include "coordinator/placement.h"
#include "coordinator/rename_fence.h"
#include "coordinator/share.h"
#include "membership/homes.h"
#include "membership/migration.h"
#include "membership/session_view.h"
#include "ops/completion.h"
#include "ops/notification.h"
#include "ops/ops.h"
#include "prefetch/grant.h"
#include "prefetch/prefetch.h"
#include "rpc/collective.h"
#include "rpc/home_rpc.h"
#include "rpc/peer_rpc.h"
#include "rpc/receive.h"

static const struct rpc_handlers rpc_handlers = {
    .take =
        {
            [RPC_HOME_REQUEST] = home_rpc_take_request,
            [RPC_HOME_REPLY] = home_rpc_take_reply,
            [RPC_COORDINATOR] = coordinator_take_item,
            [RPC_COORDINATOR_ANSWER] = coordinator_take_item,
            [RPC_COLLECTIVE] = collective_receive,
            [RPC_COLLECTIVE_ANSWER] = collective_answered,
            [RPC_LISTED] = hand_out_take,
            [RPC_NOTIFY] = notification_take,
            [RPC_MIGRATE] = migration_receive,
            [RPC_HELLO] = session_view_take_hello,
            [RPC_WELCOME] = session_view_take_welcome,
        },
    .session_is_newer = session_view_refresh,
};

static const struct collective_handlers collective_handlers = {
    .part =
        {
            [MESSAGE_LOADED] = load_part_loaded,
            [MESSAGE_RECORD] = placement_part_record,
            [MESSAGE_FREEZE] = freeze_part_freeze,
            [MESSAGE_THAW] = freeze_part_thaw,
            [MESSAGE_DROP] = freeze_part_drop,
            [MESSAGE_SETTLE] = dir_times_part_settle,
            [MESSAGE_ATTRIBUTES] = directory_part_sync,
            [MESSAGE_SYNC] = directory_part_sync,
            [MESSAGE_WATCH] = directory_part_watch,
            [MESSAGE_LIST] = list_part,
            [MESSAGE_MOVED] = directory_part_moved,
            [MESSAGE_HAS_MOVED] = homes_part_moved,
            [MESSAGE_STATUS] = status_part,
            [MESSAGE_STOP] = status_part_stop,
            [MESSAGE_FENCE] = rename_fence_part,
            [MESSAGE_EVICT] = evict_part_evict,
            [MESSAGE_EVICTED] = evict_part_evicted,
            [MESSAGE_SHARE] = share_part,
        },
    .add = {[MESSAGE_STATUS] = status_add_page, [MESSAGE_SHARE] = share_add_page},
    .concerns_nodes =
        {
            [MESSAGE_RECORD] = true,
            [MESSAGE_SETTLE] = true,
            [MESSAGE_ATTRIBUTES] = true,
            [MESSAGE_SYNC] = true,
            [MESSAGE_WATCH] = true,
            [MESSAGE_MOVED] = true,
            [MESSAGE_FENCE] = true,
        },
};

static const struct home_rpc_handlers home_rpc_handlers = {
    .thaw = coordinator_thaw, .granted = prefetch_granted, .ends = grant_ends};

static const struct coordinator_handlers coordinator_handlers = {
    .operation =
        {
            [MESSAGE_LOAD] = coordinator_load,
            [MESSAGE_MARK] = coordinator_mark,
            [MESSAGE_FREEZE] = coordinator_freeze,
            [MESSAGE_ATTRIBUTES] = coordinator_tell_all_if_marked,
            [MESSAGE_SYNC] = coordinator_tell_all_if_marked,
            [MESSAGE_SETTLE] = coordinator_settle,
            [MESSAGE_WATCH] = coordinator_tell_all,
            [MESSAGE_EVICT] = coordinator_evict,
            [MESSAGE_AWAIT_THAW] = freeze_is_over,
        },
    .see_grants = grant_see_all,
    .settle_grants = grant_settle_dir,
};

static const struct prefetch_handlers prefetch_handlers = {.create_begins = create_begins,
                                                           .create_goes_on = completion_goes_on,
                                                           .unlink_begins = unlink_begins,
                                                           .rename_begins = rename_begins,
                                                           .rename_succeeded = rename_succeeded,
                                                           .rename_answered = rename_answered,
                                                           .succeeded = completion_committed,
                                                           .settle_by_disk = completion_settle_by_disk};

static const struct membership_handlers membership_handlers = {.settle_member = completion_settle_member,
                                                               .resume_lists = list_again};

void rooms_connect(struct shuntd *shuntd)
{
    shuntd->rpc_handlers = &rpc_handlers;
    shuntd->collective_handlers = &collective_handlers;
    shuntd->home_rpc_handlers = &home_rpc_handlers;
    shuntd->coordinator_handlers = &coordinator_handlers;
    shuntd->prefetch_handlers = &prefetch_handlers;
    shuntd->membership_handlers = &membership_handlers;
}
