/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "rpc/receive.h"

#include <stdlib.h>

#include "rpc/deferred.h"

int rpc_malformed(struct shuntd *shuntd)
{
    shuntd->counts.malformed++;
    return 0;
}

static int receive_item(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    rpc_take_item *take = item->kind < RPC_KINDS ? shuntd->rpc_handlers->take[item->kind] : NULL;
    return take != NULL ? take(shuntd, member, item) : rpc_malformed(shuntd);
}

int rpc_receive_deferred(struct shuntd *shuntd)
{
    struct link waiting;
    int code = 0;
    list_init(&waiting);
    list_move(&waiting, &shuntd->deferred_items);
    for (struct link *link; code == 0 && (link = list_take(&waiting)) != NULL;) {
        struct deferred_item *deferred = LINK_OF(link, struct deferred_item, link);
        if (deferred->member == shuntd->me.number || session_has(&shuntd->session, deferred->member))
            code = receive_item(shuntd, deferred->member, &deferred->item);
        free(deferred);
    }
    return code;
}

int rpc_receive_all(struct shuntd *shuntd)
{
    struct frame_item item;
    uint16_t member;
    int code = 0;
    for (int got; code == 0 && (got = peers_next(shuntd->peers, &member, &item)) != 0;)
        code = got == PEERS_NEWER ? shuntd->rpc_handlers->session_is_newer(shuntd) : receive_item(shuntd, member, &item);
    return code;
}
