/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* CREATE, ADOPT, LOOKUP, VANISHED: what is there, and what may come. */

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/hook.h"
#include "base/sys.h"
#include "coordinator/dir_times.h"
#include "coordinator/placement.h"
#include "home/home.h"
#include "home/route.h"
#include "ops/completion.h"
#include "ops/look.h"
#include "ops/ops.h"
#include "prefetch/prefetch.h"
#include "reply/reply.h"
#include "rpc/home_rpc.h"

/* The operation on a request's first name, if somebody of this node is at work on it. */
static struct operation *create_busy(struct shuntd *shuntd, const struct message *message)
{
    return operation_find(shuntd->home, message->dir, message->name.text, message->name.length);
}

/* Begins an operation on it, once nobody else of this node has one. NULL: *how is what to return. */
static struct operation *create_begin(struct shuntd *shuntd, const struct listen_request *request, enum operation_kind kind,
                                      struct message *answer, int *how)
{
    const struct message *message = &request->message;
    struct home_dir *dir = reply_dir(shuntd, request, 0, answer, how);
    if (dir == NULL)
        return NULL;
    struct operation *operation = create_busy(shuntd, message);
    if (operation != NULL) {
        *how = reply_block(shuntd, &operation->blocked, request);
        return NULL;
    }
    operation = operation_begin(shuntd->home, kind, dir, message->name.text, message->name.length, request);
    *how = operation != NULL ? REPLY_BLOCKED : -ENOMEM;
    return operation;
}

static int create_tell_and_end(struct shuntd *shuntd, struct operation *operation, const struct name_answer *answer)
{
    int code = answer->result == MESSAGE_EXISTS || answer->result == 0
                   ? reply_place(shuntd, operation, &answer->entry, answer->result)
                   : reply_result(shuntd, operation, answer->result);
    operation_end(shuntd->home, operation);
    return code;
}

int create_begins(struct shuntd *shuntd, struct operation *operation)
{
    shuntd->counts.creates++;
    shuntd->counts.redirected += operation->place.branch != 0;
    operation->dir->leaves.creates++;
    int code = operation->place.branch != 0 ? operation_note_change(shuntd->home, operation) : 0;
    return code == 0 ? prefetch_follow(shuntd, operation) : code;
}

static int create_reserved(struct shuntd *shuntd, struct operation *operation, const struct name_answer *answer)
{
    if (answer->result != 0)
        return create_tell_and_end(shuntd, operation, answer);
    if (operation->place.branch != 0 && operation->leaf.generation != operation->dir->leaves.generation)
        return home_rpc_restart(shuntd, operation); /* the leaf went meanwhile */
    int code = create_begins(shuntd, operation);
    return code == 0 ? reply_place(shuntd, operation, &operation->place, 0) : code;
}

int ops_create(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    struct record_entry entry = {.type = message->create.entry.type, .state = RECORD_PENDING};
    const bool moves = entry.type == DT_REG && !(message->flags & MESSAGE_TRUNK);
    bool claimed = false;
    int how;
    struct home_dir *dir = reply_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    int code =
        prefetch_attach_request(shuntd, request, OPERATION_CREATE, moves && placement_dir_redirects(shuntd, dir), &claimed);
    if (code != 0 || claimed)
        return reply_silently(code);
    if (moves && create_busy(shuntd, message) == NULL)
        code = placement_choose(shuntd, dir, message->name.text, message->name.length, request->client, &entry);
    if (code != 0)
        return code == -EAGAIN ? reply_block(shuntd, &dir->blocked, request) : code;
    struct operation *operation = create_begin(shuntd, request, OPERATION_CREATE, answer, &how);
    if (operation == NULL)
        return how;
    operation->place = entry;
    operation->leaf.generation = dir->leaves.generation;
    code = entry.branch != 0 ? operation_count_in_leaf(operation) : 0;
    return code != 0 ? code : reply_silently(home_rpc_request(shuntd, operation, NAME_RESERVE, 0, &entry, create_reserved));
}

/* What the disk says now, which holds while the name is held: the entry has its type and inode then. As look_at_entry. */
static int create_look(const struct shuntd *shuntd, const struct operation *operation, struct record_entry *entry)
{
    struct statx stat;
    const int looked = look_at_entry(shuntd, operation->dir, entry, operation->name, operation->length, &stat);
    if (looked == 0) {
        entry->type = (uint8_t)IFTODT(stat.stx_mode);
        entry->ino = stat.stx_ino;
    }
    return looked;
}

/* Between the call that found it and this word of it, it may have been removed again. */
static int create_find(const struct shuntd *shuntd, const struct operation *operation, struct record_entry *found)
{
    *found = (struct record_entry){.type = operation->place.type, .state = RECORD_LIVE, .ino = operation->place.ino};
    return create_look(shuntd, operation, found);
}

static int create_adopt_found(struct shuntd *shuntd, struct operation *operation, const struct record_entry *found)
{
    int code = reply_place(shuntd, operation, found, 0);
    return code == 0 ? home_rpc_end(shuntd, operation, found) : code;
}

static int create_adopt(struct shuntd *shuntd, struct operation *operation)
{
    struct record_entry found;
    const int looked = create_find(shuntd, operation, &found);
    if (looked == 0)
        return create_adopt_found(shuntd, operation, &found);
    int code = reply_result(shuntd, operation, looked == -ESTALE ? MESSAGE_NOT_LOADED : MESSAGE_ABSENT);
    return code == 0 ? home_rpc_end(shuntd, operation, NULL) : code;
}

static bool create_is_other(const struct record_entry *known, const struct record_entry *found)
{
    return known->ino != found->ino || (found->type != DT_UNKNOWN && known->type != found->type);
}

/* The name is known. A program without the shim may have put another file in its place in the trunk; the disk tells. 1, 0, or
 * -ESTALE: the directory is not where it was. */
static int create_is_replaced(const struct shuntd *shuntd, const struct operation *operation, struct record_entry *found)
{
    const struct record_entry *known = &operation->before;
    if (known->branch != 0 || known->state != RECORD_LIVE || !create_is_other(known, &operation->place))
        return 0;
    const int looked = create_find(shuntd, operation, found);
    return looked == 0 ? create_is_other(known, found) : looked == -ESTALE ? -ESTALE : 0;
}

static int create_held_for_adoption(struct shuntd *shuntd, struct operation *operation, const struct name_answer *answer)
{
    struct record_entry found;
    if (answer->result == MESSAGE_ABSENT)
        return create_adopt(shuntd, operation);
    if (answer->result < 0)
        return create_tell_and_end(shuntd, operation, answer);
    const int is_replaced = create_is_replaced(shuntd, operation, &found);
    if (is_replaced == 1)
        return create_adopt_found(shuntd, operation, &found);
    int code = is_replaced == -ESTALE ? reply_result(shuntd, operation, MESSAGE_NOT_LOADED)
                                      : reply_place(shuntd, operation, &operation->before, MESSAGE_EXISTS);
    return code == 0 ? home_rpc_abort(shuntd, operation) : code;
}

int ops_adopt(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    int how;
    struct operation *operation = create_begin(shuntd, request, OPERATION_ADOPT, answer, &how);
    if (operation == NULL)
        return how;
    operation->place = request->message.found.entry;
    return reply_silently(home_rpc_request(shuntd, operation, NAME_CLAIM, NAME_EVEN_ABSENT, NULL, create_held_for_adoption));
}

static bool create_is_at_home(const struct shuntd *shuntd, const struct home_dir *dir, const struct message *message)
{
    uint32_t shard = record_shard(message->dir, record_hash(message->name.text, message->name.length));
    return dir->delegation != 0 || route_is_here(&shuntd->route, shuntd->me.number, shard);
}

static int create_tell_found(struct shuntd *shuntd, const struct home_dir *dir, const struct listen_request *request,
                             const struct name_answer *found)
{
    struct message reply = {.type = MESSAGE_ANSWER, .result = found->result};
    char place[REPLY_PLACE_MAX];
    if (found->result == MESSAGE_EXISTS) {
        reply.answer.entry[0] = found->entry;
        reply_put_place(shuntd, dir, &found->entry, place, &reply, 0);
    }
    return reply_silently(reply_answer(shuntd, request, &reply));
}

static uint16_t create_peeks(const struct message *lookup)
{
    return lookup->flags & MESSAGE_PEEK ? NAME_PEEK : 0;
}

/* What nobody holds, and this daemon decides about, is told without an operation. REPLY_SILENT: it was; REPLY_BLOCKED: it takes
 * an operation; or a fatal -errno. */
static int create_look_up_here(struct shuntd *shuntd, const struct home_dir *dir, const struct listen_request *request)
{
    const struct message *message = &request->message;
    const struct name_question question = {.op = NAME_LOOKUP,
                                           .flags = NAME_NONBLOCK | create_peeks(message),
                                           .member = shuntd->me.number,
                                           .branch = shuntd->branch,
                                           .dir = dir->id,
                                           .name = message->name.text,
                                           .length = message->name.length};
    struct name_answer found;
    if (dir->frozen || !create_is_at_home(shuntd, dir, message))
        return REPLY_BLOCKED;
    int code = home_ask(shuntd->home, &question, &found);
    if (code != 0 || (found.result != MESSAGE_EXISTS && found.result != MESSAGE_ABSENT))
        return code != 0 ? code : REPLY_BLOCKED;
    return create_tell_found(shuntd, dir, request, &found);
}

int ops_lookup(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct message *message = &request->message;
    int how;
    struct home_dir *dir = reply_dir(shuntd, request, 0, answer, &how);
    if (dir == NULL)
        return how;
    struct operation *operation = create_busy(shuntd, message);
    if (operation != NULL && prefetch_knows(operation)) {
        const struct name_answer found = prefetch_answer(operation);
        return create_tell_found(shuntd, dir, request, &found);
    }
    if (operation != NULL && !(message->flags & MESSAGE_PEEK) && !BROKEN("absent-while-pending"))
        return reply_block(shuntd, &operation->blocked, request);
    how = create_look_up_here(shuntd, dir, request);
    if (how != REPLY_BLOCKED)
        return how;
    operation = operation_begin(shuntd->home, OPERATION_LOOKUP, dir, message->name.text, message->name.length, request);
    return operation != NULL ? reply_silently(home_rpc_request(shuntd, operation, NAME_LOOKUP, create_peeks(message), NULL,
                                                               create_tell_and_end))
                             : -ENOMEM;
}

/* A process of this node found it in the index, without a question: a file, or that it may be made. */
int ops_looked(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    const struct record_entry *entry = &request->message.found.entry;
    struct home_dir *dir = home_dir_find(shuntd->home, request->message.dir);
    int code = 0;
    if (dir == NULL || entry->branch > shuntd->root.branch_count)
        return REPLY_SILENT;
    if (entry->state == RECORD_PENDING)
        code = home_recall_prefetched(shuntd->home, dir->id, request->message.name.text, request->message.name.length);
    return reply_silently(code != 0 ? code : home_report_visit(shuntd->home, dir, entry, shuntd->branch));
}

/* What one node's kernel did not find is known to that node alone. An entry is taken off, for all nodes, only if the disk
 * agrees: an inode number may have come again at the same place, and the call that found nothing may have missed something
 * else, as where a link leads that a program without the shim has put in the file's place. So what is there is known from now
 * on. MESSAGE_NOT_LOADED: the directory is not where it was. */
static int create_judge(const struct shuntd *shuntd, struct operation *operation)
{
    if (!record_same(&operation->before, &operation->place))
        return MESSAGE_CHANGED;
    const int looked = create_look(shuntd, operation, &operation->before);
    return looked == -ENOENT ? 0 : looked == -ESTALE ? MESSAGE_NOT_LOADED : MESSAGE_CHANGED;
}

/* The name is held: nobody makes a file at that place meanwhile. */
static int create_vanished(struct shuntd *shuntd, struct operation *operation, const struct name_answer *answer)
{
    const bool there = answer->result == MESSAGE_EXISTS;
    const int result = there ? create_judge(shuntd, operation) : MESSAGE_ABSENT;
    int code = reply_result(shuntd, operation, result);
    int ended = home_rpc_end(shuntd, operation, there && result != 0 ? &operation->before : NULL);
    return code != 0 ? code : ended;
}

int ops_vanished(struct shuntd *shuntd, const struct listen_request *request, struct message *answer)
{
    int how;
    struct operation *operation = create_begin(shuntd, request, OPERATION_VANISHED, answer, &how);
    if (operation == NULL)
        return how;
    operation->place = request->message.found.entry;
    return reply_silently(home_rpc_request(shuntd, operation, NAME_CLAIM, 0, NULL, create_vanished));
}
