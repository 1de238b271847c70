/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "rpc/deferred.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rpc_defer(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct deferred_item *deferred = malloc(sizeof *deferred + item->size);
    if (deferred == NULL)
        return -ENOMEM;
    deferred->member = member;
    deferred->item = *item;
    deferred->item.bytes = deferred->bytes;
    memcpy(deferred->bytes, item->bytes, item->size);
    list_append(&shuntd->deferred_items, &deferred->link);
    return 0;
}

void rpc_deferred_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->deferred_items)) != NULL;)
        free(LINK_OF(link, struct deferred_item, link));
}
