/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "rpc/peer_rpc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "base/log.h"
#include "prefetch/prefetch.h"
#include "membership/recovery.h"
#include "membership/heartbeat.h"
#include "rpc/collective.h"
#include "membership/homes.h"
#include "membership/migration.h"
#include "coordinator/rename_fence.h"
#include "prefetch/grant.h"
#include "membership/roles.h"
#include "membership/route.h"
#include "coordinator/coordinator.h"
#include "coordinator/dir_times.h"
#include "coordinator/delegation.h"

/* Going out. */

/* To itself goes what waits for something that is on its way here. */
static int peer_rpc_put(struct shuntd *shuntd, uint16_t member, const struct frame_item *item, bool late)
{
    if (member == shuntd->me.number)
        return migration_defer(shuntd, member, item);
    int code = late ? peers_put_late(shuntd->peers, member, item) : peers_put(shuntd->peers, member, item);
    return code == -EHOSTUNREACH ? 0 : code; /* who waits for an answer does so until his deadline */
}

static int peer_rpc_put_message(struct shuntd *shuntd, uint16_t member, enum rpc_kind kind, uint64_t id,
                                const struct message *message, bool late)
{
    uint8_t bytes[MESSAGE_SHORT + MESSAGE_TEXT_MAX];
    const struct frame_item item = {
        .kind = (uint16_t)kind, .client = id, .bytes = bytes, .size = (uint32_t)message_encode(bytes, sizeof bytes, message)};
    return item.size > 0 ? peer_rpc_put(shuntd, member, &item, late) : -EINVAL;
}

int rpc_message(struct shuntd *shuntd, uint16_t member, enum rpc_kind kind, uint64_t id, const struct message *message)
{
    return peer_rpc_put_message(shuntd, member, kind, id, message, false);
}

struct message rpc_name_message(const struct shuntd *shuntd, struct dirid dir, const char *name, size_t length,
                                const struct record_entry *entry)
{
    struct message message = {
        .type = MESSAGE_NAME, .dir[0] = dir, .name[0] = name, .name_length[0] = (uint16_t)length, .entry[0] = *entry};
    if (entry->branch != 0) {
        message.text = shuntd->root.branches[entry->branch - 1];
        message.text_length = (uint16_t)strlen(message.text);
    }
    return message;
}

/* Who speaks of a branch may not know yet that it was fenced. */
static int peer_rpc_number_of(struct shuntd *shuntd, const char *branch)
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

int rpc_entry(struct shuntd *shuntd, const struct message *message, struct record_entry *entry)
{
    char branch[LAYOUT_BRANCH_MAX];
    uint32_t incarnation;
    *entry = message->entry[0];
    if (entry->branch == 0)
        return 0;
    if (message->text_length >= sizeof branch || layout_branch_node(message->text, message->text_length, &incarnation) == 0)
        return -EBADMSG;
    memcpy(branch, message->text, message->text_length);
    branch[message->text_length] = '\0';
    int number = peer_rpc_number_of(shuntd, branch);
    if (number < 0)
        return number;
    entry->branch = (uint16_t)number;
    return 0;
}

static struct message peer_rpc_message_of(const struct shuntd *shuntd, const struct name_question *question)
{
    struct message message = rpc_name_message(shuntd, question->dir, question->name, question->length, &question->entry);
    message.tag = shuntd->route.epoch;
    message.result = question->op;
    message.flags = question->flags;
    return message;
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

int rpc_name(struct shuntd *shuntd, uint16_t member, const struct home_dir *dir, const char *name, size_t length,
             const struct record_entry *entry)
{
    struct message message = rpc_name_message(shuntd, dir->id, name, length, entry);
    message.tag = shuntd->route.epoch;
    message.child.birth = dir->version;
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

bool rpc_waits(const struct shuntd *shuntd)
{
    return operation_count(shuntd->home) > 0 || collective_is_under_way(shuntd) || peers_wait(shuntd->peers) ||
           homes_are_moving(shuntd);
}

/* Coming in. */

static int peer_rpc_malformed(struct shuntd *shuntd)
{
    shuntd->counts.malformed++;
    return 0;
}

static int peer_rpc_reply(struct shuntd *shuntd, const struct name_question *question, const struct name_answer *answer)
{
    if (question->member == shuntd->me.number) {
        struct operation *operation = operation_by_id(shuntd->home, question->id);
        return operation != NULL && operation->pending_op != 0 ? home_rpc_answered(shuntd, operation, answer) : 0;
    }
    struct message message = rpc_name_message(shuntd, question->dir, NULL, 0, &answer->entry);
    message.type = MESSAGE_ANSWER;
    message.tag = shuntd->route.epoch;
    message.result = answer->result;
    return rpc_message(shuntd, question->member, RPC_HOME_REPLY, question->id, &message);
}

static bool peer_rpc_wants_answer(const struct name_question *question)
{
    return question->op != NAME_RELEASE && question->op != NAME_REQUESTED;
}

/* The end of a name that another daemon is home of by now finds its way; who wants an answer asks again. */
static int peer_rpc_pass_on(struct shuntd *shuntd, const struct name_question *question, const struct frame_item *item)
{
    static const struct name_answer remote = {.result = MESSAGE_REMOTE};
    struct frame_item passed = *item;
    if (question->op != NAME_RELEASE)
        return peer_rpc_wants_answer(question) ? peer_rpc_reply(shuntd, question, &remote) : 0;
    passed.qp = question->member;
    return peer_rpc_put(shuntd, route_of_name(shuntd, question->dir, question->name, question->length), &passed, false);
}

static int peer_rpc_take_ask(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct message message;
    struct name_question question;
    struct name_answer answer;
    if (message_decode(&message, item->bytes, item->size) != 0 || message.type != MESSAGE_NAME || message.result <= 0 ||
        message.result >= NAME_OPS || item->qp > UINT16_MAX)
        return peer_rpc_malformed(shuntd);
    question = (struct name_question){.op = (uint16_t)message.result,
                                      .flags = message.flags,
                                      .member = item->qp != 0 ? (uint16_t)item->qp : member,
                                      .id = item->client,
                                      .dir = message.dir[0],
                                      .name = message.name[0],
                                      .length = message.name_length[0]};
    if (question.op == NAME_RELEASE && migration_is_outdated(shuntd, message.tag))
        return 0;
    int code = rpc_entry(shuntd, &message, &question.entry);
    if (code != 0)
        return code == -EBADMSG ? peer_rpc_malformed(shuntd) : code;
    if (route_of_name(shuntd, question.dir, question.name, question.length) != shuntd->me.number)
        return peer_rpc_pass_on(shuntd, &question, item);
    if (migration_is_awaited(shuntd, record_shard(question.dir, record_hash(question.name, question.length))))
        return migration_defer(shuntd, member, item);
    shuntd->counts.remote_requests++;
    code = home_ask(shuntd, &question, &answer);
    if (code == 0 && peer_rpc_wants_answer(&question))
        code = peer_rpc_reply(shuntd, &question, &answer);
    return code == HOME_WAITS ? 0 : code;
}

static int peer_rpc_take_reply(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct operation *operation = operation_by_id(shuntd->home, item->client);
    struct message message;
    struct name_answer answer;
    if (message_decode(&message, item->bytes, item->size) != 0 || message.type != MESSAGE_ANSWER)
        return peer_rpc_malformed(shuntd);
    int code = rpc_entry(shuntd, &message, &answer.entry);
    if (code != 0)
        return code == -EBADMSG ? peer_rpc_malformed(shuntd) : code;
    answer.result = migration_is_outdated(shuntd, message.tag) ? MESSAGE_REMOTE : message.result;
    return operation != NULL && operation->pending_op != 0 ? home_rpc_answered(shuntd, operation, &answer) : 0;
}

static int peer_rpc_take_rule(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct message message;
    if (message_decode(&message, item->bytes, item->size) != 0)
        return peer_rpc_malformed(shuntd);
    if (item->kind == RPC_COORDINATOR_ANSWER)
        return coordinator_answered(shuntd, item->client, &message);
    if (route_of_dir(shuntd, message.dir[0]) == shuntd->me.number &&
        migration_is_awaited(shuntd, record_shard(message.dir[0], 0)))
        return migration_defer(shuntd, member, item);
    return coordinator_receive(shuntd, member, item->client, &message);
}

/* The directory is not known as complete yet; its coordinator says how many there are (collective_known). */
static int peer_rpc_take_listed(struct shuntd *shuntd, const struct frame_item *item)
{
    struct message message;
    struct record_entry entry;
    if (message_decode(&message, item->bytes, item->size) != 0 || message.type != MESSAGE_NAME)
        return peer_rpc_malformed(shuntd);
    int code = rpc_entry(shuntd, &message, &entry);
    if (code != 0 || entry.state != RECORD_LIVE)
        return code == -EBADMSG || code == 0 ? peer_rpc_malformed(shuntd) : code;
    struct home_dir *dir = home_dir_find(shuntd->home, message.dir[0]);
    if (message.tag != shuntd->route.epoch)
        return 0;
    if (dir == NULL && (dir = home_dir_add(shuntd->home, message.dir[0], "")) == NULL)
        return -ENOMEM;
    code = home_list_begin(shuntd, dir, message.child.birth);
    if (code != 0 || dir->complete)
        return code == -ESTALE ? 0 : code;
    code = home_list_name(shuntd, dir, message.name[0], message.name_length[0], &entry);
    return ++dir->listed == dir->expected && code == 0 ? home_dir_wake(shuntd->home, dir) : code;
}

/* What the coordinator is told that is about to be one waits until it is. */
static int peer_rpc_take_times(struct shuntd *shuntd, uint16_t member, const struct frame_item *item,
                               const struct message *message)
{
    bool rules = route_of_dir(shuntd, message->dir[0]) == shuntd->me.number;
    return rules && migration_is_awaited(shuntd, record_shard(message->dir[0], 0)) ? migration_defer(shuntd, member, item)
                                                                                   : dir_times_take(shuntd, member, message);
}

/* Its process is at work on it; or has not asked for it yet: then who waits goes first. Or it has ended, and word of that
 * has not left yet. */
static int peer_rpc_heed_awaited(struct shuntd *shuntd, uint16_t member, uint64_t id)
{
    struct operation *operation = operation_by_id(shuntd->home, id);
    int code = operation != NULL ? grant_settle(shuntd, operation) : 0;
    operation = operation_by_id(shuntd->home, id);
    operation_await(shuntd->home, id);
    if (operation == NULL)
        peers_urge(shuntd->peers, member);
    if (code != 0 || operation == NULL || !operation->was_prefetched || (!operation->prefetched && BROKEN("ahead-unclaimed")))
        return code;
    return operation->prefetched ? prefetch_give_back(shuntd, operation) : home_rpc_requested(shuntd, operation);
}

static int peer_rpc_heed_notifications(struct shuntd *shuntd, uint16_t member, uint64_t operation,
                                       const struct message *message)
{
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir[0]);
    if (message->type == MESSAGE_IDLE)
        return coordinator_dir_idle(shuntd, message->dir[0]);
    if (message->type == MESSAGE_RECALL)
        return delegation_recalled(shuntd, member, message->dir[0], message->child.birth);
    if (message->type == MESSAGE_AWAITED)
        return peer_rpc_heed_awaited(shuntd, member, operation);
    if (message->type == MESSAGE_NODES && dir != NULL)
        dir->nodes = message->tag;
    if (message->type != MESSAGE_VISITED || dir == NULL)
        return 0;
    home_leaf_note_visit(&dir->leaves, message->tag);
    return prefetch_leave_leaf(shuntd, dir, message->tag);
}

static int peer_rpc_take_notifications(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct message message;
    if (message_decode(&message, item->bytes, item->size) != 0)
        return peer_rpc_malformed(shuntd);
    if (message.type == MESSAGE_TIMES)
        return peer_rpc_take_times(shuntd, member, item, &message);
    return peer_rpc_heed_notifications(shuntd, member, item->client, &message);
}

static int peer_rpc_say(struct shuntd *shuntd, uint16_t member, enum rpc_kind kind)
{
    const struct frame_item item = {.kind = (uint16_t)kind};
    return peer_rpc_put(shuntd, member, &item, false);
}

static int peer_rpc_take_item(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    switch (item->kind) {
    case RPC_HOME_REQUEST:
        return peer_rpc_take_ask(shuntd, member, item);
    case RPC_HOME_REPLY:
        return peer_rpc_take_reply(shuntd, member, item);
    case RPC_COORDINATOR:
    case RPC_COORDINATOR_ANSWER:
        return peer_rpc_take_rule(shuntd, member, item);
    case RPC_COLLECTIVE:
        return collective_receive(shuntd, member, item->client, item->bytes, item->size);
    case RPC_COLLECTIVE_ANSWER:
        return collective_answered(shuntd, member, item->client, item->bytes, item->size);
    case RPC_LISTED:
        return peer_rpc_take_listed(shuntd, item);
    case RPC_NOTIFY:
        return peer_rpc_take_notifications(shuntd, member, item);
    case RPC_MIGRATE:
        return migration_receive(shuntd, member, item);
    case RPC_HELLO:
        return peer_rpc_say(shuntd, member, RPC_WELCOME);
    case RPC_WELCOME:
        shuntd->is_welcome = true;
        return 0;
    default:
        return peer_rpc_malformed(shuntd);
    }
}

int rpc_greet(struct shuntd *shuntd, uint16_t member)
{
    return peer_rpc_say(shuntd, member, RPC_HELLO);
}

int rpc_receive_deferred(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    return peer_rpc_take_item(shuntd, member, item);
}

static int peer_rpc_tell_notifications(struct shuntd *shuntd, const struct home_notification *notifications)
{
    static const uint16_t types[] = {
        [NOTIFY_LEAF_VISITED] = MESSAGE_VISITED, [NOTIFY_IDLE] = MESSAGE_IDLE, [NOTIFY_AWAITED] = MESSAGE_AWAITED};
    if (notifications->kind == NOTIFY_UNCLAIMED)
        return delegation_continue(shuntd, notifications->dir);
    const struct message message = {
        .type = types[notifications->kind], .tag = notifications->leaf, .dir[0] = notifications->dir};
    uint16_t member = notifications->kind == NOTIFY_IDLE           ? route_of_dir(shuntd, notifications->dir)
                      : notifications->kind == NOTIFY_LEAF_VISITED ? rpc_member_of(shuntd, notifications->branch)
                                                                   : notifications->member;
    if (member == shuntd->me.number)
        return peer_rpc_heed_notifications(shuntd, member, notifications->operation, &message);
    return member != 0 ? rpc_message(shuntd, member, RPC_NOTIFY, notifications->operation, &message) : 0;
}

int rpc_resume(struct shuntd *shuntd)
{
    struct name_question question;
    struct name_answer answer;
    struct home_notification notifications;
    int got, code = 0;
    while (code == 0 && (got = home_next_question(shuntd, &question, &answer)) != 0)
        code = got < 0 ? got : peer_rpc_reply(shuntd, &question, &answer);
    while (code == 0 && home_next_notification(shuntd->home, &notifications))
        code = peer_rpc_tell_notifications(shuntd, &notifications);
    return code == 0 ? collective_resume(shuntd) : code;
}

/* Who is there. */

/* Who joined, and is no member any more perhaps, may have left files in a branch that this daemon has not heard of. */
static int peer_rpc_look_for_branches(struct shuntd *shuntd)
{
    size_t known = shuntd->root.branch_count;
    if (shuntd->session.next == shuntd->next_seen)
        return 0;
    int code = union_root_look(&shuntd->root);
    for (size_t i = known; i < shuntd->root.branch_count && code == 0; i++)
        code = index_put_branch(shuntd->index, (uint16_t)(i + 1), shuntd->root.branches[i]);
    shuntd->next_seen = shuntd->session.next;
    return code;
}

/* A branch is known for good: its number stands in entries. */
static int peer_rpc_add_branch(struct shuntd *shuntd, const struct session_member *member)
{
    if (shuntd->branch_of[member->number] != 0)
        return 0;
    int number = peer_rpc_number_of(shuntd, member->branch);
    if (number < 0)
        return number;
    shuntd->branch_of[member->number] = (uint16_t)number;
    return 0;
}

/* One without an address is not reached yet, and reaches nobody. */
static int peer_rpc_add_member(struct shuntd *shuntd, const struct session_member *member)
{
    if (member->number == shuntd->me.number || member->address_size == 0)
        return 0;
    int code = peer_rpc_add_branch(shuntd, member);
    return code == 0 && member->home != SESSION_LOST
               ? peers_add(shuntd->peers, member->number, member->since, member->address, member->address_size)
               : code;
}

/* Those of members that were lost have another name now; their numbers stay. */
static int peer_rpc_follow_fences(struct shuntd *shuntd)
{
    char fenced[LAYOUT_BRANCH_MAX];
    int code = 0;
    for (uint32_t member = 1; member < shuntd->session.next && code == 0; member++) {
        uint16_t number = shuntd->branch_of[member];
        if (number == 0 || session_find(&shuntd->session, (uint16_t)member) != NULL)
            continue;
        shuntd->branch_of[member] = 0;
        const char *branch = shuntd->root.branches[number - 1];
        if (!session_is_fenced(shuntd->root.path, branch) || !session_fenced_name(branch, fenced))
            continue;
        union_root_rename(&shuntd->root, number, fenced);
        code = index_put_branch(shuntd->index, number, fenced);
    }
    return code;
}

static int peer_rpc_remove_members(struct shuntd *shuntd)
{
    int code = 0;
    for (uint32_t number = 1; number < shuntd->session.next && code == 0; number++) {
        uint16_t member = (uint16_t)number;
        if (!peers_knows(shuntd->peers, member) || session_has(&shuntd->session, member))
            continue;
        code = collective_gone(shuntd, member);
        if (code == 0)
            code = delegation_member_gone(shuntd, member);
        rename_fence_gone(shuntd, member);
        if (code == 0)
            code = completion_settle_member(shuntd, member);
        peers_remove(shuntd->peers, member);
    }
    return code;
}

/* Read once for a session: what becomes of the file later changes nothing for who has the key. */
static int peer_rpc_own_key(struct shuntd *shuntd, uint8_t key[FRAME_KEY])
{
    int code = 0;
    if (shuntd->key_session != shuntd->session.id)
        code = session_key(shuntd->root.path, &shuntd->session, shuntd->key);
    if (code == 0)
        shuntd->key_session = shuntd->session.id;
    memcpy(key, shuntd->key, FRAME_KEY);
    return code;
}

int rpc_adopt_session(struct shuntd *shuntd)
{
    const struct session *session = &shuntd->session;
    struct frame_self self = {
        .session = session->id, .epoch = session->epoch, .instance = shuntd->me.since, .member = shuntd->me.number};
    int code = peer_rpc_own_key(shuntd, self.key);
    if (code != 0)
        return code;
    peers_set_self(shuntd->peers, &self);
    /* Who hands over what he has, and ends, waits until all that he said and was told is acknowledged. */
    peers_hasten(shuntd->peers, roles_are_leaving(session));
    code = peer_rpc_look_for_branches(shuntd);
    for (size_t i = 0; i < session->count && code == 0; i++)
        code = peer_rpc_add_member(shuntd, &session->members[i]);
    if (code == 0)
        code = homes_adopt(shuntd);
    if (code == 0)
        code = peer_rpc_remove_members(shuntd);
    if (code == 0)
        code = peer_rpc_follow_fences(shuntd);
    heartbeat_adopt(shuntd);
    shuntd->cut_off |= shuntd->me.number != 0 && !session_has(session, shuntd->me.number);
    return code == 0 ? recovery_members_gone(shuntd) : code;
}

static int peer_rpc_look(struct shuntd *shuntd, bool anyhow)
{
    struct session session;
    int code = session_read(shuntd->root.path, &session);
    shuntd->cut_off |= code == 0 && session.id != shuntd->session.id;
    if (code != 0 || session.id != shuntd->session.id || (session.epoch <= shuntd->session.epoch && !anyhow)) {
        if (code != 0) /* the file system may be back with the next frame */
            log_line("the session cannot be read: %s", strerror(-code));
        session_finish(&session);
        return 0;
    }
    session_finish(&shuntd->session);
    shuntd->session = session;
    code = rpc_adopt_session(shuntd);
    return code;
}

int rpc_refresh_session(struct shuntd *shuntd)
{
    return peer_rpc_look(shuntd, false);
}

int rpc_reread_session(struct shuntd *shuntd)
{
    return peer_rpc_look(shuntd, true);
}

void rpc_leave_session(struct shuntd *shuntd)
{
    struct frame_self self = {.session = shuntd->session.id,
                              .epoch = shuntd->session.epoch + 1,
                              .instance = shuntd->me.since,
                              .member = shuntd->me.number};
    if (shuntd->session.count < 2 || session_key(shuntd->root.path, &shuntd->session, self.key) != 0)
        return;
    session_leave(shuntd->root.path, shuntd->session.id, shuntd->me.number);
    peers_set_self(shuntd->peers, &self);
    peers_flush(shuntd->peers);
}

/* The file system may fail for a while: then it is told with a later batch. */
static int peer_rpc_revise(struct shuntd *shuntd)
{
    struct session_member *me = session_find(&shuntd->session, shuntd->me.number);
    size_t size = sizeof me->address;
    int code = me == NULL ? -ENOENT : peers_address(shuntd->peers, me->address, &size);
    if (code != 0)
        return code;
    me->address_size = (uint8_t)size;
    code = session_revise(shuntd->root.path, &shuntd->session);
    if (code == 0)
        shuntd->me = *me;
    return code;
}

int rpc_publish_address(struct shuntd *shuntd)
{
    if (shuntd->me.address_size > 0 || !peers_is_open(shuntd->peers))
        return 0;
    int code = peer_rpc_revise(shuntd);
    while (code == -ESTALE) { /* somebody joined meanwhile */
        if ((code = rpc_refresh_session(shuntd)) != 0)
            return code;
        code = peer_rpc_revise(shuntd);
    }
    if (code == 0)
        return rpc_adopt_session(shuntd);
    log_line("the session cannot be told the address: %s", strerror(-code));
    return 0;
}

int rpc_receive_all(struct shuntd *shuntd)
{
    struct frame_item item;
    uint16_t member;
    int code = 0;
    for (int got; code == 0 && (got = peers_next(shuntd->peers, &member, &item)) != 0;)
        code = got == PEERS_NEWER ? rpc_refresh_session(shuntd) : peer_rpc_take_item(shuntd, member, &item);
    return code;
}

/* Coming: what is asked of a home here is waited for, since nothing else is to be done. */

static int peer_rpc_pass(struct shuntd *shuntd)
{
    int code = rpc_refresh_session(shuntd);
    if (code == 0)
        code = rpc_receive_all(shuntd);
    peers_flush(shuntd->peers);
    return code;
}

/* A home may end meanwhile: then another one is to know. */
int rpc_join_session(struct shuntd *shuntd, uint64_t deadline)
{
    const uint64_t pulse = 50 * CLOCK_MILLISECOND, until = clock_monotonic() + deadline;
    const struct session_member *home;
    uint16_t told = 0;
    int code = 0;
    while (code == 0 && !shuntd->is_welcome && clock_monotonic() < until && (home = session_home(&shuntd->session)) != NULL) {
        uint32_t rings = listen_rings(shuntd->listen);
        if (home->number != told)
            code = peer_rpc_say(shuntd, home->number, RPC_HELLO);
        told = home->number;
        if (code == 0)
            code = peer_rpc_pass(shuntd);
        if (code == 0 && !shuntd->is_welcome)
            listen_wait(shuntd->listen, rings, pulse);
    }
    return code != 0 || shuntd->is_welcome || home == NULL ? code : -ETIMEDOUT;
}
