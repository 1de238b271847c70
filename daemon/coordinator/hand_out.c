/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "coordinator/hand_out.h"

#include <errno.h>
#include <string.h>

#include "base/hook.h"
#include "home/home.h"
#include "home/route.h"
#include "rpc/peer_rpc.h"
#include "rpc/receive.h"

/* 1: this load is over here. The path is told with LOADED. */
static int hand_out_begin(struct shuntd *shuntd, const struct hand_out *load, struct home_dir **dir)
{
    *dir = home_dir_find(shuntd->home, load->dir);
    if (*dir == NULL && (*dir = home_dir_add(shuntd->home, load->dir, "")) == NULL)
        return -ENOMEM;
    int code = home_list_begin(shuntd->home, *dir, load->number);
    return code == 0 && (*dir)->complete ? 1 : code;
}

static int hand_out_keep(struct shuntd *shuntd, struct home_dir *dir, const char *name, size_t length,
                         const struct record_entry *entry)
{
    int code = home_list_name(shuntd->home, dir, name, length, entry);
    return ++dir->listed == dir->expected && code == 0 ? home_dir_wake(shuntd->home, dir) : code;
}

int hand_out(struct shuntd *shuntd, const struct hand_out *load, const struct listing *listing, uint32_t *expected)
{
    struct home_dir *here = NULL;
    int code = 0;
    for (size_t i = 0; i < listing->count && code == 0 && !BROKEN("absent-unloaded"); i++) {
        const struct union_name *name = &listing->names[i];
        size_t length = strlen(name->name);
        const struct record_entry entry = {
            .type = name->type, .state = RECORD_LIVE, .branch = name->branch, .leaf = name->leaf, .ino = name->ino};
        uint16_t home = load->whole != 0 ? load->whole : route_of_name(&shuntd->route, load->dir, name->name, length);
        expected[home]++;
        if (home == shuntd->me.number && here == NULL)
            code = hand_out_begin(shuntd, load, &here);
        if (code == 0)
            code = home == shuntd->me.number ? hand_out_keep(shuntd, here, name->name, length, &entry)
                                             : rpc_name(shuntd, home, load->dir, load->number, name->name, length, &entry);
    }
    return code == 1 ? -ESTALE : code;
}

int hand_out_leaf_counts(struct home_dir *dir, const struct listing *listing)
{
    int code = 0;
    for (size_t i = 0; i < listing->leaves && code == 0; i++)
        code = home_leaf_add(&dir->leaves, (uint32_t)i, (int32_t)listing->leaf_counts[i]);
    return code;
}

/* The directory is not known as complete yet; its coordinator says how many there are (load_part_loaded). */
int hand_out_take(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct message message;
    struct record_entry entry;
    if (message_decode(&message, item->bytes, item->size) != 0 || message.type != MESSAGE_LISTED)
        return rpc_malformed(shuntd);
    int code = rpc_take_entry(shuntd, &message.listed.entry, &entry);
    if (code != 0 || entry.state != RECORD_LIVE)
        return code == -EBADMSG || code == 0 ? rpc_malformed(shuntd) : code;
    if (message.epoch != shuntd->route.epoch)
        return 0;
    struct home_dir *dir;
    code = hand_out_begin(shuntd, &(struct hand_out){.dir = message.dir, .number = message.listed.load_number}, &dir);
    if (code == 0)
        code = hand_out_keep(shuntd, dir, message.name.text, message.name.length, &entry);
    return code == -ESTALE || code == 1 ? 0 : code;
}
