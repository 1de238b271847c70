/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What an operation asks of the home of its name, here or elsewhere, and what an answer means to any operation. */

#include "rpc/home_rpc.h"

#include <errno.h>
#include <string.h>

#include "base/hook.h"
#include "home/home.h"
#include "home/route.h"
#include "home/state.h"
#include "reply/reply.h"
#include "rpc/deferred.h"
#include "rpc/peer_rpc.h"
#include "rpc/receive.h"

static struct name_question home_rpc_question_of(const struct shuntd *shuntd, const struct operation *operation)
{
    return (struct name_question){.op = operation->pending.op,
                                  .flags = operation->pending.flags,
                                  .member = shuntd->me.number,
                                  .branch = shuntd->branch,
                                  .id = operation->id,
                                  .dir = operation->dir->id,
                                  .entry = operation->pending.entry,
                                  .name = operation->name,
                                  .length = operation->length};
}

static uint16_t home_rpc_home_of(const struct shuntd *shuntd, const struct operation *operation)
{
    return operation->dir->delegation != 0 ? shuntd->me.number : shuntd->route.home[operation->shard];
}

static bool home_rpc_is_awaited(const struct shuntd *shuntd, const struct operation *operation)
{
    return operation->dir->delegation == 0 && route_is_awaited(&shuntd->route, operation->shard);
}

/* A daemon that is cut off from the home of a name waits for it: no other knows what has become of the name by now. */
static bool home_rpc_decides_alone(const struct shuntd *shuntd, const struct operation *operation)
{
    return BROKEN("silent-home") && (operation->pending.op == NAME_LOOKUP || operation->pending.op == NAME_RESERVE) &&
           peers_is_silent(shuntd->peers, operation->pending.member, shuntd->options.deadline);
}

static int home_rpc_answered(struct shuntd *, struct operation *, const struct name_answer *);

static int home_rpc_ask(struct shuntd *shuntd, struct operation *operation)
{
    struct name_question question = home_rpc_question_of(shuntd, operation);
    struct name_answer answer;
    operation->pending.member = home_rpc_home_of(shuntd, operation);
    if (home_rpc_decides_alone(shuntd, operation)) {
        answer = (struct name_answer){.result = operation->pending.op == NAME_LOOKUP ? MESSAGE_ABSENT : 0};
        return home_rpc_answered(shuntd, operation, &answer);
    }
    if (operation->pending.member != shuntd->me.number || home_rpc_is_awaited(shuntd, operation))
        return rpc_home_request(shuntd, operation->pending.member, &question);
    int code = home_ask(shuntd->home, &question, &answer);
    return code == HOME_WAITS ? 0 : code != 0 ? code : home_rpc_answered(shuntd, operation, &answer);
}

int home_rpc_request(struct shuntd *shuntd, struct operation *operation, enum name_op op, unsigned flags,
                     const struct record_entry *entry, operation_next *then)
{
    operation->pending.op = (uint16_t)op;
    operation->pending.flags = (uint16_t)flags;
    operation->pending.entry = entry != NULL ? *entry : (struct record_entry){0};
    operation->pending.completion = then;
    return home_rpc_ask(shuntd, operation);
}

/* The first operation after that number that asks a daemon which is gone. */
static struct operation *home_rpc_asks_nobody(struct shuntd *shuntd, uint64_t behind)
{
    struct link *operations = &shuntd->home->operations;
    for (struct link *link = operations->next; link != operations; link = link->next) {
        struct operation *operation = LINK_OF(link, struct operation, all);
        if (operation->id > behind && operation->pending.op != 0 && !session_has(&shuntd->session, operation->pending.member))
            return operation;
    }
    return NULL;
}

int home_rpc_repeat(struct shuntd *shuntd)
{
    uint64_t last = 0;
    int code = 0;
    for (struct operation *operation; code == 0 && (operation = home_rpc_asks_nobody(shuntd, last)) != NULL;) {
        last = operation->id;
        code = home_rpc_ask(shuntd, operation);
    }
    return code;
}

int home_rpc_each_asked(struct shuntd *shuntd, uint64_t *last, rpc_each_member *each)
{
    struct link *operations = &shuntd->home->operations;
    const uint64_t upto = *last;
    int code = 0;
    *last = shuntd->home->last_id;
    for (struct link *link = operations->next; link != operations && code == 0; link = link->next) {
        const struct operation *operation = LINK_OF(link, struct operation, all);
        if (operation->id > upto)
            break;
        code = operation->pending.op != 0 ? each(shuntd, operation->pending.member) : 0;
    }
    return code;
}

static int home_rpc_tell_end(struct shuntd *shuntd, const struct operation *operation, const struct record_entry *entry)
{
    struct name_question question = home_rpc_question_of(shuntd, operation);
    struct name_answer unused;
    question.op = NAME_RELEASE;
    question.flags = 0;
    question.entry = entry != NULL ? *entry : (struct record_entry){0};
    if (entry != NULL)
        question.entry.state = RECORD_LIVE;
    uint16_t home = home_rpc_home_of(shuntd, operation);
    return home == shuntd->me.number && !home_rpc_is_awaited(shuntd, operation)
               ? home_ask(shuntd->home, &question, &unused)
               : rpc_home_release(shuntd, home, &question, operation->awaited);
}

int home_rpc_requested(struct shuntd *shuntd, const struct operation *operation)
{
    struct name_question question = home_rpc_question_of(shuntd, operation);
    struct name_answer unused;
    uint16_t home = home_rpc_home_of(shuntd, operation);
    question.op = NAME_REQUESTED;
    question.flags = 0;
    return home == shuntd->me.number && !home_rpc_is_awaited(shuntd, operation) ? home_ask(shuntd->home, &question, &unused)
                                                                                : rpc_home_request(shuntd, home, &question);
}

int home_rpc_let_go(struct shuntd *shuntd, struct operation *operation)
{
    const struct record_entry *before = operation_had_entry(operation) ? &operation->before : NULL;
    int code = operation_is_claimed(operation) ? home_rpc_tell_end(shuntd, operation, before) : 0;
    operation->claim = CLAIM_NONE;
    operation->before = operation->shown = (struct record_entry){0};
    return code;
}

int home_rpc_end(struct shuntd *shuntd, struct operation *operation, const struct record_entry *entry)
{
    int code = operation_is_claimed(operation) ? home_rpc_tell_end(shuntd, operation, entry) : 0;
    shuntd->home_rpc_handlers->ends(shuntd, operation);
    operation_end(shuntd->home, operation);
    return code;
}

int home_rpc_abort(struct shuntd *shuntd, struct operation *operation)
{
    struct operation *partner = operation_partner(operation);
    int code = 0;
    if (partner != NULL) {
        partner->rename.partner = NULL;
        if (operation_is_asking(partner))
            operation_abandon(partner);
        else
            code = home_rpc_abort(shuntd, partner);
    }
    if (code == 0 && operation_is_frozen(operation))
        code = shuntd->home_rpc_handlers->thaw(shuntd, operation->rmdir.child);
    int ended = home_rpc_end(shuntd, operation, operation_had_entry(operation) ? &operation->before : NULL);
    return code != 0 ? code : ended;
}

int home_rpc_restart(struct shuntd *shuntd, struct operation *operation)
{
    struct operation *first =
        operation->request != NULL || operation_partner(operation) == NULL ? operation : operation_partner(operation);
    struct blocked_request *request = first->request;
    first->request = NULL;
    int code = home_rpc_abort(shuntd, operation);
    if (request != NULL)
        home_retry(shuntd->home, request);
    return code;
}

static int home_rpc_not_loaded(struct shuntd *shuntd, struct operation *operation)
{
    const struct operation *first = operation->tag != 0 ? operation : operation_partner(operation);
    int code = reply_forget_dir(shuntd, operation->dir);
    if (code == 0)
        code = reply_result(shuntd, first, MESSAGE_NOT_LOADED);
    return code == 0 ? home_rpc_abort(shuntd, operation) : code;
}

/* What it was told of its name before, and that it has it. */
static void home_rpc_note_held(struct operation *operation, const struct name_answer *answer)
{
    const bool is_given = (operation->pending.flags & NAME_EVEN_ABSENT) != 0;
    operation->claim = answer->result == MESSAGE_EXISTS ? CLAIM_EXISTING : is_given ? CLAIM_NEW : CLAIM_NONE;
    operation->before = operation_had_entry(operation) ? answer->entry : (struct record_entry){0};
    operation->shown = answer->entry;
    if (operation_had_entry(operation) && operation->pending.entry.state != 0)
        operation->shown.state = operation->pending.entry.state;
}

static void home_rpc_note(struct operation *operation, uint16_t op, const struct name_answer *answer)
{
    if (op == NAME_RESERVE && answer->result == 0) {
        operation->claim = CLAIM_NEW;
        operation->shown = answer->entry;
    }
    if (op == NAME_CLAIM && (answer->result == MESSAGE_EXISTS || answer->result == MESSAGE_ABSENT))
        home_rpc_note_held(operation, answer);
    if (op == NAME_MARK && answer->result == 0)
        operation->shown = operation->pending.entry;
}

/* What its home said before a process asked for it is no answer to that, unless it gave the name. It can wait now; of a
 * rename's two names none may, while the other is held (ops/rename.c). */
static bool home_rpc_is_too_early(const struct operation *operation, int result)
{
    const bool says_who_has_it = result == MESSAGE_BUSY || result == MESSAGE_EXISTS || result == MESSAGE_ABSENT;
    return (operation->pending.flags & NAME_PREFETCH) && says_who_has_it && !operation_is_claimed(operation) &&
           operation_partner(operation) == NULL;
}

static int home_rpc_answered(struct shuntd *shuntd, struct operation *operation, const struct name_answer *answer)
{
    uint16_t op = operation->pending.op;
    operation->pending.op = 0;
    home_rpc_note(operation, op, answer);
    const bool in_trunk =
        operation_had_entry(operation) && operation->before.branch == 0; /* perhaps no file: what is said of it may differ */
    if (operation_is_abandoned(operation) ||
        (operation_is_prefetched(operation) && (!operation_is_claimed(operation) || in_trunk)))
        return home_rpc_abort(shuntd, operation);
    if (operation_is_prefetched(
            operation)) { /* prefetch_attach_request goes on with it; lookups of the name have waited for that */
        home_wake(shuntd->home, &operation->blocked);
        return shuntd->home_rpc_handlers->granted(shuntd, operation);
    }
    if (home_rpc_is_too_early(operation, answer->result))
        return home_rpc_request(shuntd, operation, op, operation->pending.flags & ~(unsigned)NAME_PREFETCH,
                                &operation->pending.entry, operation->pending.completion);
    if (answer->result == MESSAGE_REMOTE && (op == NAME_MARK || operation->kind == OPERATION_RMDIR))
        return home_rpc_request(shuntd, operation, op, operation->pending.flags, &operation->pending.entry,
                                operation->pending.completion);
    if (answer->result == MESSAGE_REMOTE)
        return home_rpc_restart(shuntd, operation);
    if (answer->result == MESSAGE_NOT_LOADED)
        return home_rpc_not_loaded(shuntd, operation);
    return operation->pending.completion(shuntd, operation, answer);
}

static int home_rpc_reply(struct shuntd *shuntd, const struct name_question *question, const struct name_answer *answer)
{
    if (question->member == shuntd->me.number) {
        struct operation *operation = operation_by_id(shuntd->home, question->id);
        return operation != NULL && operation->pending.op != 0 ? home_rpc_answered(shuntd, operation, answer) : 0;
    }
    const struct message message = {.type = MESSAGE_NAME_ANSWER,
                                    .result = answer->result,
                                    .epoch = shuntd->route.epoch,
                                    .dir = question->dir,
                                    .name_answer.entry = rpc_put_entry(shuntd, &answer->entry)};
    return rpc_message(shuntd, question->member, RPC_HOME_REPLY, question->id, &message);
}

static bool home_rpc_wants_answer(const struct name_question *question)
{
    return question->op != NAME_RELEASE && question->op != NAME_REQUESTED;
}

/* The end of a name that another daemon is home of by now is passed on; a request that wants an answer is repeated. */
static int home_rpc_pass_on(struct shuntd *shuntd, const struct name_question *question, const struct frame_item *item)
{
    static const struct name_answer remote = {.result = MESSAGE_REMOTE};
    struct frame_item passed = *item;
    if (question->op != NAME_RELEASE)
        return home_rpc_wants_answer(question) ? home_rpc_reply(shuntd, question, &remote) : 0;
    passed.qp = question->member;
    return rpc_put(shuntd, route_of_name(&shuntd->route, question->dir, question->name, question->length), &passed, false);
}

int home_rpc_take_request(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct message message;
    struct name_question question;
    struct name_answer answer;
    if (message_decode(&message, item->bytes, item->size) != 0 || message.type != MESSAGE_NAME_QUESTION ||
        message.name_question.op == 0 || message.name_question.op >= NAME_OPS || item->qp > UINT16_MAX)
        return rpc_malformed(shuntd);
    const uint16_t asker = item->qp != 0 ? (uint16_t)item->qp : member;
    question = (struct name_question){.op = message.name_question.op,
                                      .flags = message.flags,
                                      .member = asker,
                                      .branch = shuntd_branch(shuntd, asker),
                                      .id = item->client,
                                      .dir = message.dir,
                                      .name = message.name.text,
                                      .length = message.name.length};
    if (question.op == NAME_RELEASE && route_is_outdated(&shuntd->route, message.epoch))
        return 0;
    int code = rpc_take_entry(shuntd, &message.name_question.entry, &question.entry);
    if (code != 0)
        return code == -EBADMSG ? rpc_malformed(shuntd) : code;
    if (route_of_name(&shuntd->route, question.dir, question.name, question.length) != shuntd->me.number)
        return home_rpc_pass_on(shuntd, &question, item);
    if (route_is_awaited(&shuntd->route, record_shard(question.dir, record_hash(question.name, question.length))))
        return rpc_defer(shuntd, member, item);
    shuntd->counts.remote_requests++;
    code = home_ask(shuntd->home, &question, &answer);
    if (code == 0 && home_rpc_wants_answer(&question))
        code = home_rpc_reply(shuntd, &question, &answer);
    return code == HOME_WAITS ? 0 : code;
}

int home_rpc_take_reply(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct operation *operation = operation_by_id(shuntd->home, item->client);
    struct message message;
    struct name_answer answer;
    if (message_decode(&message, item->bytes, item->size) != 0 || message.type != MESSAGE_NAME_ANSWER)
        return rpc_malformed(shuntd);
    int code = rpc_take_entry(shuntd, &message.name_answer.entry, &answer.entry);
    if (code != 0)
        return code == -EBADMSG ? rpc_malformed(shuntd) : code;
    answer.result = route_is_outdated(&shuntd->route, message.epoch) ? MESSAGE_REMOTE : message.result;
    return operation != NULL && operation->pending.op != 0 ? home_rpc_answered(shuntd, operation, &answer) : 0;
}

int home_rpc_answer_waiting(struct shuntd *shuntd)
{
    struct name_question question;
    struct name_answer answer;
    int got, code = 0;
    while (code == 0 && (got = home_next_question(shuntd->home, &question, &answer)) != 0)
        code = got < 0 ? got : home_rpc_reply(shuntd, &question, &answer);
    return code;
}
