/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "rpc/peer_rpc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/log.h"
#include "home/home.h"
#include "rpc/deferred.h"

/* To itself goes what waits for something that is on its way here. */
int rpc_put(struct shuntd *shuntd, uint16_t member, const struct frame_item *item, bool late)
{
    if (member == shuntd->me.number)
        return rpc_defer(shuntd, member, item);
    int code = late ? peers_put_late(shuntd->peers, member, item) : peers_put(shuntd->peers, member, item);
    return code == -EHOSTUNREACH ? 0 : code; /* a request that wants an answer waits until its deadline */
}

static int peer_rpc_put_message(struct shuntd *shuntd, uint16_t member, enum rpc_kind kind, uint64_t id,
                                const struct message *message, bool late)
{
    uint8_t bytes[MESSAGE_SHORT + MESSAGE_TEXT_MAX];
    const struct frame_item item = {
        .kind = (uint16_t)kind, .client = id, .bytes = bytes, .size = (uint32_t)message_encode(bytes, sizeof bytes, message)};
    return item.size > 0 ? rpc_put(shuntd, member, &item, late) : -EINVAL;
}

int rpc_message(struct shuntd *shuntd, uint16_t member, enum rpc_kind kind, uint64_t id, const struct message *message)
{
    return peer_rpc_put_message(shuntd, member, kind, id, message, false);
}

struct message_entry rpc_put_entry(const struct shuntd *shuntd, const struct record_entry *entry)
{
    const char *branch = entry->branch != 0 ? shuntd->root.branches[entry->branch - 1] : "";
    return (struct message_entry){.entry = *entry, .branch = message_text(branch, strlen(branch))};
}

/* A daemon that names a branch may not know yet that it was fenced. */
int rpc_branch_number(struct shuntd *shuntd, const char *branch)
{
    char fenced[LAYOUT_BRANCH_MAX];
    int number = union_root_branch(&shuntd->root, branch);
    if (number == 0 && session_fenced_name(branch, fenced))
        number = union_root_branch(&shuntd->root, fenced);
    if (number != 0)
        return number;
    number = union_root_add(&shuntd->root, branch);
    int code = number < 0 ? number : index_put_branch(shuntd->index, (uint16_t)number, branch);
    return code == 0 ? number : code;
}

int rpc_take_entry(struct shuntd *shuntd, const struct message_entry *told, struct record_entry *entry)
{
    char branch[LAYOUT_BRANCH_MAX];
    uint32_t incarnation;
    *entry = told->entry;
    if (entry->branch == 0)
        return 0;
    if (told->branch.length >= sizeof branch || layout_branch_node(told->branch.text, told->branch.length, &incarnation) == 0)
        return -EBADMSG;
    message_copy_path(branch, &told->branch);
    int number = rpc_branch_number(shuntd, branch);
    if (number < 0)
        return number;
    entry->branch = (uint16_t)number;
    return 0;
}

static struct message peer_rpc_message_of(const struct shuntd *shuntd, const struct name_question *question)
{
    return (struct message){.type = MESSAGE_NAME_QUESTION,
                            .flags = question->flags,
                            .epoch = shuntd->route.epoch,
                            .dir = question->dir,
                            .name = message_text(question->name, question->length),
                            .name_question = {.entry = rpc_put_entry(shuntd, &question->entry), .op = question->op}};
}

int rpc_home_request(struct shuntd *shuntd, uint16_t member, const struct name_question *question)
{
    const struct message message = peer_rpc_message_of(shuntd, question);
    HOOK("request-relayed");
    return rpc_message(shuntd, member, RPC_HOME_REQUEST, question->id, &message);
}

int rpc_home_release(struct shuntd *shuntd, uint16_t member, const struct name_question *question, bool awaited)
{
    const struct message message = peer_rpc_message_of(shuntd, question);
    HOOK("notice-relayed");
    return peer_rpc_put_message(shuntd, member, RPC_HOME_REQUEST, question->id, &message, !awaited);
}

int rpc_name(struct shuntd *shuntd, uint16_t member, struct dirid dir, uint64_t number, const char *name, size_t length,
             const struct record_entry *entry)
{
    const struct message message = {.type = MESSAGE_LISTED,
                                    .epoch = shuntd->route.epoch,
                                    .dir = dir,
                                    .name = message_text(name, length),
                                    .listed = {.entry = rpc_put_entry(shuntd, entry), .load_number = number}};
    return rpc_message(shuntd, member, RPC_LISTED, 0, &message);
}

uint16_t rpc_member_of(const struct shuntd *shuntd, uint16_t branch)
{
    if (branch == shuntd->branch)
        return shuntd->me.number;
    for (size_t i = 0; i < shuntd->session.count; i++)
        if (shuntd->branch_of[shuntd->session.members[i].number] == branch)
            return shuntd->session.members[i].number;
    return 0;
}

static int peer_rpc_say(struct shuntd *shuntd, uint16_t member, enum rpc_kind kind, uint64_t number)
{
    const struct frame_item item = {.kind = (uint16_t)kind, .client = number};
    return rpc_put(shuntd, member, &item, false);
}

int rpc_greet(struct shuntd *shuntd, uint16_t member)
{
    return peer_rpc_say(shuntd, member, RPC_HELLO, 0);
}

int rpc_welcome(struct shuntd *shuntd, uint16_t member, uint64_t stalled)
{
    return peer_rpc_say(shuntd, member, RPC_WELCOME, stalled);
}
