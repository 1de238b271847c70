/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "coordinator/coordinator.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hook.h"
#include "coordinator/delegation.h"
#include "coordinator/dir_times.h"
#include "coordinator/load.h"
#include "coordinator/new_dirs.h"
#include "home/home.h"
#include "home/route.h"
#include "reply/answer_queue.h"
#include "reply/reply.h"
#include "rpc/collective.h"
#include "rpc/deferred.h"
#include "rpc/peer_rpc.h"
#include "rpc/receive.h"

/* A coordinator that took over goes on after the one before it, even where it begins again. */
static uint64_t coordinator_next_number(const struct shuntd *shuntd, uint64_t last)
{
    uint64_t first = (uint64_t)shuntd->route.epoch << COORDINATOR_EPOCH_BITS;
    last = last < shuntd->outnumbered ? shuntd->outnumbered : last;
    return last < first ? first : last + 1;
}

void coordinator_outnumber(struct shuntd *shuntd, const struct home_dir *dir)
{
    const uint64_t highest = dir->version > dir->times.round ? dir->version : dir->times.round;
    shuntd->outnumbered = shuntd->outnumbered > highest ? shuntd->outnumbered : highest;
}

void coordinator_number_decision(struct shuntd *shuntd, struct home_dir *dir)
{
    dir->version = coordinator_next_number(shuntd, dir->version);
}

void coordinator_put_record(struct message_record *told, const struct home_dir *dir)
{
    const struct record_dir *record = &dir->record;
    *told = (struct message_record){.marker = record->marker,
                                    .version = dir->version,
                                    .marked = (record->flags & RECORD_MARKED) != 0,
                                    .unlisted = (record->flags & RECORD_UNLISTED) != 0,
                                    .watched = record->why == RECORD_WHY_WATCHED,
                                    .mirror = message_text(record->mirror, strnlen(record->mirror, RECORD_MIRROR_MAX - 1))};
}

void coordinator_adopt_record(struct home_dir *dir, const struct message_record *told)
{
    const uint32_t decided = RECORD_MARKED | RECORD_UNLISTED;
    const uint32_t flags = (told->marked ? RECORD_MARKED : 0) | (told->unlisted ? RECORD_UNLISTED : 0);
    struct record_dir *record = &dir->record;
    char mirror[RECORD_MIRROR_MAX] = {0}; /* the message may point into this very record */
    if (told->watched && record->why == RECORD_WHY_NOT)
        record->why = RECORD_WHY_WATCHED;
    if (told->version < dir->version)
        return;
    dir->version = told->version;
    if (told->mirror.length < sizeof mirror)
        memcpy(mirror, told->mirror.text, told->mirror.length);
    memcpy(record->mirror, mirror, sizeof mirror);
    record->flags = (record->flags & ~decided) | flags;
    record->marker = told->marker;
    dir->mirrored &= (record->flags & RECORD_MARKED) != 0;
}

void coordinator_adopt_answer(struct home_dir *dir, const struct message_record *told)
{
    coordinator_adopt_record(dir, told);
    dir->mirrored |= told->marked && told->version == dir->version;
}

/* The daemon that asks. */

/* Is this daemon to be the directory's coordinator, and still to hear what the others know? */
static bool coordinator_is_awaited(const struct shuntd *shuntd, struct dirid dir)
{
    return route_of_dir(&shuntd->route, dir) == shuntd->me.number && route_is_awaited(&shuntd->route, record_shard(dir, 0));
}

static int coordinator_send(struct shuntd *shuntd, struct coordinator_call *coordinator_call)
{
    struct message message;
    message_decode(&message, coordinator_call->bytes, coordinator_call->size); /* as it was encoded */
    coordinator_call->member = route_of_dir(&shuntd->route, message.dir);
    coordinator_call->epoch = shuntd->route.epoch;
    uint64_t id = coordinator_call->done != NULL ? coordinator_call->id : 0;
    return coordinator_call->member == shuntd->me.number && !coordinator_is_awaited(shuntd, message.dir)
               ? coordinator_receive(shuntd, shuntd->me.number, id, &message)
               : rpc_message(shuntd, coordinator_call->member, RPC_COORDINATOR, id, &message);
}

int coordinator_submit(struct shuntd *shuntd, const struct message *message, coordinator_done *done,
                       const struct coordinator_call *what)
{
    size_t size = message_size(message);
    struct coordinator_call *coordinator_call = calloc(1, sizeof *coordinator_call + size);
    if (coordinator_call == NULL)
        return -ENOMEM;
    if (what != NULL)
        memcpy(coordinator_call, what, sizeof *coordinator_call);
    coordinator_call->done = done;
    coordinator_call->id = ++shuntd->last_coordinator_call;
    coordinator_call->size = (uint32_t)message_encode(coordinator_call->bytes, size, message);
    list_init(&coordinator_call->link);
    if (done != NULL)
        list_append(&shuntd->coordinator_calls, &coordinator_call->link);
    int code = coordinator_send(shuntd, coordinator_call);
    if (done == NULL)
        free(coordinator_call);
    return code;
}

int coordinator_each_asked(struct shuntd *shuntd, uint64_t *last, rpc_each_member *each)
{
    const uint64_t upto = *last;
    int code = 0;
    *last = shuntd->last_coordinator_call;
    for (struct link *link = shuntd->coordinator_calls.next; link != &shuntd->coordinator_calls && code == 0;
         link = link->next) {
        const struct coordinator_call *call = LINK_OF(link, struct coordinator_call, link);
        code = call->id <= upto ? each(shuntd, call->member) : 0;
    }
    return code;
}

static int coordinator_tell_client(struct shuntd *shuntd, const struct coordinator_call *coordinator_call,
                                   const struct message *answer)
{
    struct message told = {.type = MESSAGE_ANSWER, .result = answer->result};
    return coordinator_call->tag != 0
               ? reply_send(shuntd, coordinator_call->client, coordinator_call->qp, coordinator_call->tag, &told)
               : 0;
}

int coordinator_submit_for(struct shuntd *shuntd, const struct message *message, const struct listen_request *request)
{
    const struct coordinator_call coordinator_call = {
        .client = request->client, .qp = request->qp, .tag = request->message.tag};
    int code = coordinator_submit(shuntd, message, coordinator_tell_client, &coordinator_call);
    return code == 0 ? REPLY_SILENT : code;
}

static struct message coordinator_about(uint16_t type, struct dirid dir)
{
    return (struct message){.type = type, .dir = dir};
}

int coordinator_thaw(struct shuntd *shuntd, struct dirid dir)
{
    const struct message thaw = coordinator_about(MESSAGE_THAW, dir);
    return coordinator_submit(shuntd, &thaw, NULL, NULL);
}

int coordinator_thaw_for(struct shuntd *shuntd, struct dirid dir, const struct listen_request *request)
{
    const struct message thaw = coordinator_about(MESSAGE_THAW, dir);
    return coordinator_submit_for(shuntd, &thaw, request);
}

int coordinator_drop(struct shuntd *shuntd, struct dirid dir)
{
    const struct message drop = coordinator_about(MESSAGE_DROP, dir);
    return coordinator_submit(shuntd, &drop, NULL, NULL);
}

static int coordinator_tell_new(struct shuntd *shuntd, const struct message *born)
{
    const uint16_t member = route_of_dir(&shuntd->route, born->dir);
    const int code = coordinator_submit(shuntd, born, NULL, NULL);
    return code != 0 || member == shuntd->me.number ? code : new_dirs_note(shuntd, born->dir, member);
}

/* Where this daemon alone is home of all, and has all, it is known from now on; else the first daemon that uses it asks its
 * coordinator. */
int coordinator_dir_created(struct shuntd *shuntd, struct dirid id, const char *path)
{
    struct message born = coordinator_about(MESSAGE_DIR_CREATED, id);
    if (!route_is_sole(&shuntd->route) || shuntd->route.missing > 0) {
        born.load.path = message_text(path, strlen(path));
        return coordinator_is_awaited(shuntd, id) ? 0 : coordinator_tell_new(shuntd, &born);
    }
    if (home_dir_find(shuntd->home, id) != NULL)
        return 0;
    struct home_dir *dir = home_dir_add(shuntd->home, id, path);
    struct home_coordinator *coordinator = dir != NULL ? home_coordinator(dir) : NULL;
    if (coordinator == NULL)
        return -ENOMEM;
    coordinator->loaded = dir->complete = true;
    dir->record = (struct record_dir){.flags = RECORD_LOADED};
    int code = coordinator_add_node(coordinator, shuntd->me.number);
    return code < 0 ? code : home_dir_store(shuntd->home, dir);
}

static struct coordinator_call *coordinator_call_of(struct shuntd *shuntd, uint64_t id)
{
    for (struct link *link = shuntd->coordinator_calls.next; link != &shuntd->coordinator_calls; link = link->next)
        if (LINK_OF(link, struct coordinator_call, link)->id == id)
            return LINK_OF(link, struct coordinator_call, link);
    return NULL;
}

/* It was asked before all began again, when the directory was another thing to its homes. That it is frozen means no less
 * than before: its mirrors are gone, and the file system itself says if anything has come since. */
static bool coordinator_is_outdated(const struct shuntd *shuntd, const struct coordinator_call *coordinator_call)
{
    struct message asked;
    message_decode(&asked, coordinator_call->bytes, coordinator_call->size);
    return route_is_outdated(&shuntd->route, coordinator_call->epoch) && asked.type != MESSAGE_FREEZE;
}

int coordinator_answered(struct shuntd *shuntd, uint64_t id, const struct message *answer)
{
    struct coordinator_call *coordinator_call = coordinator_call_of(shuntd, id);
    if (coordinator_call == NULL)
        return 0;
    if (answer->result == MESSAGE_REMOTE || coordinator_is_outdated(shuntd, coordinator_call))
        return coordinator_send(shuntd, coordinator_call);
    list_remove(&coordinator_call->link);
    int code = coordinator_call->done(shuntd, coordinator_call, answer);
    free(coordinator_call);
    return code;
}

static struct coordinator_call *coordinator_asks_nobody(struct shuntd *shuntd, uint64_t behind)
{
    for (struct link *link = shuntd->coordinator_calls.next; link != &shuntd->coordinator_calls; link = link->next) {
        struct coordinator_call *coordinator_call = LINK_OF(link, struct coordinator_call, link);
        if (coordinator_call->id > behind && !session_has(&shuntd->session, coordinator_call->member))
            return coordinator_call;
    }
    return NULL;
}

struct waited_for {
    struct dirid *dirs; /* NULL: they are only counted */
    size_t count;
    uint16_t member;
};

static void coordinator_note_dir(struct waited_for *waited, const struct home_dir *dir)
{
    if (waited->dirs != NULL)
        waited->dirs[waited->count] = dir->id;
    waited->count++;
}

static void coordinator_note_waited_for(struct home_dir *dir, void *context)
{
    struct waited_for *waited = context;
    if (dir->coordinator == NULL || dir->coordinator->in_request || list_empty(&dir->coordinator->queued))
        return;
    coordinator_note_dir(waited, dir);
}

static void coordinator_note_closed(struct home_dir *dir, void *context)
{
    struct waited_for *waited = context;
    const struct home_coordinator *coordinator = dir->coordinator;
    if (coordinator != NULL && coordinator->closing &&
        (coordinator->closed_for == waited->member || coordinator->closed_for == 0))
        coordinator_note_dir(waited, dir);
}

/* With each directory that is noted. */
static int coordinator_each(struct shuntd *shuntd, uint16_t member, void (*note)(struct home_dir *, void *),
                            int (*each)(struct shuntd *, struct dirid))
{
    struct waited_for waited = {.member = member};
    int code = 0;
    home_dirs_each(shuntd->home, note, &waited);
    if (waited.count == 0)
        return 0;
    waited.dirs = malloc(waited.count * sizeof *waited.dirs);
    if (waited.dirs == NULL)
        return -ENOMEM;
    waited.count = 0;
    home_dirs_each(shuntd->home, note, &waited);
    for (size_t i = 0; i < waited.count && code == 0; i++)
        code = each(shuntd, waited.dirs[i]);
    free(waited.dirs);
    return code;
}

int coordinator_resume_all(struct shuntd *shuntd)
{
    return coordinator_each(shuntd, 0, coordinator_note_waited_for, coordinator_resume);
}

/* Where it is not known whose rmdir that is, and it is not over, the file system says whether anything has come since. */
int coordinator_member_gone(struct shuntd *shuntd, uint16_t member)
{
    return coordinator_each(shuntd, member, coordinator_note_closed, coordinator_thaw);
}

int coordinator_resubmit(struct shuntd *shuntd)
{
    uint64_t last = 0;
    int code = 0;
    for (struct coordinator_call *coordinator_call;
         code == 0 && (coordinator_call = coordinator_asks_nobody(shuntd, last)) != NULL;) {
        last = coordinator_call->id;
        code = coordinator_send(shuntd, coordinator_call);
    }
    return code;
}

/* Silent members. */

/* A file system that stalls keeps it from being removed from the session, or is the reason that it is silent: it is waited for.
 */
static bool coordinator_is_silent(const struct shuntd *shuntd, uint16_t member)
{
    const uint64_t stalled = __atomic_load_n(&shuntd->stalled, __ATOMIC_RELAXED);
    const bool is_stalled = stalled != 0 && clock_after(stalled, shuntd->options.deadline) > shuntd->now;
    return !is_stalled && peers_is_silent(shuntd->peers, member, shuntd->options.deadline);
}

static bool coordinator_is_anybody_silent(const struct shuntd *shuntd)
{
    for (size_t i = 0; i < shuntd->session.count; i++)
        if (coordinator_is_silent(shuntd, shuntd->session.members[i].number))
            return true;
    return false;
}

static int coordinator_give_up_coordinator_calls(struct shuntd *shuntd)
{
    int code = 0;
    for (struct link *link = shuntd->coordinator_calls.next, *next; link != &shuntd->coordinator_calls && code == 0;
         link = next) {
        struct coordinator_call *coordinator_call = LINK_OF(link, struct coordinator_call, link);
        struct message answer = {.type = MESSAGE_COORDINATOR_ANSWER, .result = -ETIMEDOUT}, asked;
        next = link->next;
        message_decode(&asked, coordinator_call->bytes, coordinator_call->size);
        if (asked.type != MESSAGE_LOAD || !coordinator_is_silent(shuntd, coordinator_call->member))
            continue;
        answer.dir = asked.dir;
        code = coordinator_answered(shuntd, coordinator_call->id, &answer);
    }
    return code;
}

struct giving_up {
    struct shuntd *shuntd;
    int code;
};

/* The requests to load a directory that wait at this coordinator. */
static void coordinator_give_up_questions(struct home_dir *dir, void *context)
{
    struct giving_up *giving_up = context;
    struct home_coordinator *coordinator = dir->coordinator;
    if (coordinator == NULL || !(coordinator->in_request || route_is_gathering(&giving_up->shuntd->route)))
        return;
    struct link overdue;
    list_init(&overdue);
    for (struct link *link = coordinator->queued.next, *next; link != &coordinator->queued; link = next) {
        next = link->next;
        if (LINK_OF(link, struct coordinator_request, link)->message.type == MESSAGE_LOAD) {
            list_remove(link);
            list_append(&overdue, link);
        }
    }
    if (coordinator->load_request != NULL)
        list_append(&overdue, &coordinator->load_request->link);
    coordinator->load_request = NULL;
    for (struct link *link; giving_up->code == 0 && (link = list_take(&overdue)) != NULL;)
        giving_up->code = coordinator_result(giving_up->shuntd, LINK_OF(link, struct coordinator_request, link), -ETIMEDOUT);
}

int coordinator_give_up(struct shuntd *shuntd)
{
    struct giving_up giving_up = {.shuntd = shuntd};
    if (!coordinator_is_anybody_silent(shuntd))
        return 0;
    giving_up.code = coordinator_give_up_coordinator_calls(shuntd);
    if (giving_up.code == 0)
        home_dirs_each(shuntd->home, coordinator_give_up_questions, &giving_up);
    return giving_up.code;
}

/* The coordinator. */

int coordinator_add_node(struct home_coordinator *coordinator, uint16_t member)
{
    for (uint32_t i = 0; i < coordinator->node_count; i++)
        if (coordinator->nodes[i] == member)
            return 0;
    uint16_t *more = realloc(coordinator->nodes, (coordinator->node_count + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    coordinator->nodes = more;
    coordinator->nodes[coordinator->node_count++] = member;
    return 1;
}

int coordinator_answer(struct shuntd *shuntd, struct coordinator_request *question, struct message *answer)
{
    uint64_t id = question->id;
    uint16_t member = question->member;
    answer->type = MESSAGE_COORDINATOR_ANSWER;
    answer->dir = question->message.dir;
    free(question);
    if (id == 0)
        return 0;
    return member == shuntd->me.number ? coordinator_answered(shuntd, id, answer)
                                       : rpc_message(shuntd, member, RPC_COORDINATOR_ANSWER, id, answer);
}

int coordinator_result(struct shuntd *shuntd, struct coordinator_request *question, int result)
{
    struct message answer = {.result = result};
    return coordinator_answer(shuntd, question, &answer);
}

void coordinator_begin_job(struct shuntd *shuntd, struct disk_job *job)
{
    shuntd->trunk_jobs++;
    disk_submit(shuntd->disk, job);
}

void coordinator_end_job(struct shuntd *shuntd, uint32_t began)
{
    shuntd->trunk_jobs--;
    shuntd->outdated_jobs -= route_is_outdated(&shuntd->route, began);
}

bool coordinator_has_lease(const struct shuntd *shuntd)
{
    return clock_boot() < listen_lease(shuntd->listen) || BROKEN("trunk-job-without-a-lease");
}

bool coordinator_may_settle(const void *shuntd)
{
    return coordinator_has_lease(shuntd);
}

void coordinator_let_go(struct home_dir *dir)
{
    struct home_coordinator *coordinator = dir->coordinator;
    if (coordinator != NULL && !coordinator->loaded && !coordinator->created_empty && !coordinator->sharded &&
        !coordinator->in_request && list_empty(&coordinator->queued) && list_empty(&coordinator->awaiting_idle)) {
        free(coordinator->nodes);
        free(coordinator);
        dir->coordinator = NULL;
    }
}

static void coordinator_release(struct shuntd *shuntd, struct home_dir *dir)
{
    coordinator_let_go(dir);
    home_dir_release(shuntd->home, dir);
}

int coordinator_resume(struct shuntd *shuntd, struct dirid id)
{
    struct home_dir *dir = home_dir_find(shuntd->home, id);
    struct link waiting;
    int code = 0;
    if (dir == NULL || dir->coordinator == NULL)
        return 0;
    list_init(&waiting);
    list_move(&waiting, &dir->coordinator->queued);
    for (struct link *link; code == 0 && (link = list_take(&waiting)) != NULL;)
        code = coordinator_serve(shuntd, LINK_OF(link, struct coordinator_request, link));
    dir = home_dir_find(shuntd->home, id);
    if (dir != NULL)
        coordinator_release(shuntd, dir);
    return code;
}

struct told {
    struct dirid dir;
    struct coordinator_request *question;
};

/* Where a daemon is gone that may not have done its part, all are told again: the mirrors of its node are another's business
 * then. */
static int coordinator_is_told(struct shuntd *shuntd, void *context, const struct collective_end *end)
{
    struct told told = *(struct told *)context;
    if (end->lost && end->result >= 0)
        return collective_begin(shuntd, &told.question->message, NULL, coordinator_is_told, context);
    struct home_dir *dir = home_dir_find(shuntd->home, told.dir);
    free(context);
    if (dir != NULL && dir->coordinator != NULL)
        dir->coordinator->in_request = false;
    int code = coordinator_result(shuntd, told.question, end->result < 0 ? end->result : 0);
    return code == 0 ? coordinator_resume(shuntd, told.dir) : code;
}

/* Every daemon does its part; then the question is answered. */
int coordinator_tell_all(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question)
{
    struct told *told = malloc(sizeof *told);
    if (told == NULL)
        return -ENOMEM;
    *told = (struct told){.dir = dir->id, .question = question};
    dir->coordinator->in_request = true;
    HOOK("all-asked");
    return collective_begin(shuntd, &question->message, NULL, coordinator_is_told, told);
}

int coordinator_tell_all_if_marked(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question)
{
    return dir->record.flags & RECORD_MARKED ? coordinator_tell_all(shuntd, dir, question)
                                             : coordinator_result(shuntd, question, 0);
}

/* No change before this counts. */
int coordinator_settle(struct shuntd *shuntd, struct home_dir *dir, struct coordinator_request *question)
{
    question->message.settle.round = coordinator_next_number(shuntd, dir->times.round);
    return coordinator_tell_all(shuntd, dir, question);
}

/* It was empty when it was made, and nobody has asked for it yet. This is heeded at once or not at all: a coordinator that
 * hears of it later, or from the one before it, may have forgotten meanwhile that the directory is used, and would take its
 * names for absent. Without it, the directory is listed. */
static int coordinator_note_created(struct shuntd *shuntd, struct coordinator_request *question)
{
    char path[PATH_MAX];
    const struct message *message = &question->message;
    message_copy_path(path, &message->load.path);
    if (home_dir_find(shuntd->home, message->dir) == NULL) {
        struct home_dir *dir = home_dir_add(shuntd->home, message->dir, path);
        if (dir == NULL || home_coordinator(dir) == NULL)
            return -ENOMEM;
        dir->coordinator->created_empty = true;
    }
    return coordinator_result(shuntd, question, 0);
}

void coordinator_forget(struct home_coordinator *coordinator)
{
    coordinator->loaded = coordinator->created_empty = coordinator->closing = coordinator->sharded = false;
    delegation_forget(coordinator);
}

/* What ends an rmdir: it was removed, or not. */
static int coordinator_reopen(struct shuntd *shuntd, struct coordinator_request *question)
{
    struct home_dir *dir = home_dir_find(shuntd->home, question->message.dir);
    if (dir == NULL || dir->coordinator == NULL)
        return coordinator_result(shuntd, question, 0);
    dir->coordinator->closing = false;
    if (question->message.type == MESSAGE_DROP)
        coordinator_forget(dir->coordinator);
    return coordinator_tell_all(shuntd, dir, question);
}

/* Nobody hears the answer, or would say how an rmdir ended. */
bool coordinator_is_left(const struct shuntd *shuntd, const struct coordinator_request *question)
{
    return question->id != 0 && question->member != shuntd->me.number && !session_has(&shuntd->session, question->member);
}

int coordinator_serve(struct shuntd *shuntd, struct coordinator_request *question)
{
    const struct message *message = &question->message;
    const bool ends = message->type == MESSAGE_THAW || message->type == MESSAGE_DROP;
    if (!ends && coordinator_is_left(shuntd, question)) {
        free(question);
        return 0;
    }
    if (route_of_dir(&shuntd->route, message->dir) != shuntd->me.number)
        return coordinator_pass_on(shuntd, question);
    if (message->type == MESSAGE_DIR_CREATED)
        return coordinator_note_created(shuntd, question);
    if (message->type == MESSAGE_RETURN)
        return delegation_returned(shuntd, question);
    struct home_dir *dir = home_dir_find(shuntd->home, message->dir);
    struct home_coordinator *coordinator = dir != NULL ? dir->coordinator : NULL;
    if (coordinator != NULL && (coordinator->in_request || (coordinator->closing && !ends))) {
        HOOK("request-blocked");
        list_append(&coordinator->queued, &question->link);
        shuntd->counts.blocked++;
        return 0;
    }
    if (ends)
        return coordinator_reopen(shuntd, question);
    if (message->type != MESSAGE_LOAD && (coordinator == NULL || !coordinator->loaded))
        return coordinator_result(shuntd, question, MESSAGE_NOT_LOADED);
    return shuntd->coordinator_handlers->operation[message->type](shuntd, dir, question);
}

/* Another daemon is its home now: a request that wants an answer is repeated there, one that wants none is passed on. */
int coordinator_pass_on(struct shuntd *shuntd, struct coordinator_request *question)
{
    const struct message *message = &question->message;
    if (question->id != 0)
        return coordinator_result(shuntd, question, MESSAGE_REMOTE);
    int code = message->type == MESSAGE_DIR_CREATED
                   ? 0 /* coordinator_note_created */
                   : rpc_message(shuntd, route_of_dir(&shuntd->route, message->dir), RPC_COORDINATOR, 0, message);
    free(question);
    return code;
}

static bool coordinator_is_question(const struct shuntd *shuntd, uint16_t type)
{
    return type < MESSAGE_TYPES && (shuntd->coordinator_handlers->operation[type] != NULL || type == MESSAGE_DIR_CREATED ||
                                    type == MESSAGE_RETURN || type == MESSAGE_THAW || type == MESSAGE_DROP);
}

int coordinator_receive(struct shuntd *shuntd, uint16_t member, uint64_t id, const struct message *message)
{
    size_t size = message_size(message);
    if (!coordinator_is_question(shuntd, message->type)) {
        shuntd->counts.malformed++;
        return 0;
    }
    struct coordinator_request *question = malloc(sizeof *question + size);
    if (question == NULL)
        return -ENOMEM;
    list_init(&question->link);
    question->member = member;
    question->id = id;
    question->began = 0;
    message_decode(&question->message, question->bytes, message_encode(question->bytes, size, message));
    return coordinator_serve(shuntd, question);
}

void coordinator_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->coordinator_calls)) != NULL;)
        free(LINK_OF(link, struct coordinator_call, link));
}

int coordinator_take_item(struct shuntd *shuntd, uint16_t member, const struct frame_item *item)
{
    struct message message;
    if (message_decode(&message, item->bytes, item->size) != 0)
        return rpc_malformed(shuntd);
    if (item->kind == RPC_COORDINATOR_ANSWER)
        return coordinator_answered(shuntd, item->client, &message);
    if (coordinator_is_awaited(shuntd, message.dir))
        return message.type == MESSAGE_DIR_CREATED ? 0 : rpc_defer(shuntd, member, item);
    return coordinator_receive(shuntd, member, item->client, &message);
}
