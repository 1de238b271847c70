/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "prefetch/prefetch.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hook.h"
#include "coordinator/dir_times.h"
#include "coordinator/placement.h"
#include "home/home.h"
#include "home/oom_reserve.h"
#include "home/route.h"
#include "home/state.h"
#include "prefetch/grant.h"
#include "prefetch/stream.h"
#include "rpc/home_rpc.h"

#define IDLE                                                                                                                   \
    CLOCK_MILLISECOND /* a stream that has named nothing for so long, while another of its queue pair does, has become that    \
                         one */

int prefetch_create(struct prefetch **to)
{
    *to = calloc(1, sizeof **to);
    return *to != NULL ? 0 : -ENOMEM;
}

void prefetch_destroy(struct prefetch *prefetch)
{
    free(prefetch);
}

static struct stream *prefetch_stream_of(const struct shuntd *shuntd, const struct operation *operation)
{
    struct prefetch *prefetch = shuntd->prefetch;
    switch (operation->kind) {
    case OPERATION_CREATE:
        return &prefetch->streams[operation->qp];
    case OPERATION_UNLINK:
        return &prefetch->removers[operation->qp];
    default:
        return &prefetch->renamers[operation->qp].old;
    }
}

/* Giving back. */

/* What was predicted has not come, or somebody else came first. All that was reserved together counts once. */
static void prefetch_was_wrong(const struct shuntd *shuntd, const struct operation *operation)
{
    struct stream *stream = prefetch_stream_of(shuntd, operation);
    struct rename_stream *renames = operation_renames(operation) ? &shuntd->prefetch->renamers[operation->qp] : NULL;
    const bool is_kept = renames != NULL && renames->made > 0;
    if ((stream->reserved > 0 || stream->granted > 0 || is_kept) && stream->run < RUN_MAX)
        stream->run *= 2;
    stream->sequence.run = stream->window = stream->reserved = stream->granted = 0;
    if (renames != NULL)
        renames->to.run = renames->made = 0;
}

/* Its home may not have answered yet: the end follows the answer then. */
static int prefetch_release(struct shuntd *shuntd, struct operation *operation)
{
    if (BROKEN("ahead-kept"))
        return 0;
    operation_abandon(operation);
    return operation->pending.op != 0 ? 0 : home_rpc_abort(shuntd, operation);
}

int prefetch_give_back(struct shuntd *shuntd, struct operation *operation)
{
    if (operation_is_abandoned(operation))
        return 0;
    prefetch_was_wrong(shuntd, operation);
    return prefetch_release(shuntd, operation);
}

bool prefetch_knows(const struct operation *operation)
{
    return operation_is_prefetched(operation) && operation_is_claimed(operation);
}

struct name_answer prefetch_answer(const struct operation *operation)
{
    return (struct name_answer){.result = operation_had_entry(operation) ? MESSAGE_EXISTS : MESSAGE_ABSENT,
                                .entry = operation->before};
}

struct operation *prefetch_operation_on(const struct shuntd *shuntd, const struct message *message, unsigned i)
{
    const bool renames = message->type == MESSAGE_RENAME || message->type == MESSAGE_RENAMED;
    const struct message_text *name = i == 0 ? &message->name : &message->rename.to_name;
    if ((i == 1 && !renames) || name->length == 0)
        return NULL;
    return operation_find(shuntd->home, i == 0 ? message->dir : message->rename.to_dir, name->text, name->length);
}

/* Does a request go on with what is asked for ahead, or look itself whether it can? */
static bool prefetch_is_for(const struct operation *operation, const struct message *message, unsigned i)
{
    switch (message->type) {
    case MESSAGE_CREATE:
    case MESSAGE_UNLINK:
    case MESSAGE_LOOKUP:
        return true;
    case MESSAGE_RENAME:
        return operation->kind == (i == 0 ? OPERATION_RENAME_FROM : OPERATION_RENAME_TO) &&
               !(message->flags & MESSAGE_EXCHANGE);
    default:
        return false;
    }
}

int prefetch_make_way(struct shuntd *shuntd, const struct message *message)
{
    int code = 0;
    if (shuntd->home->prefetched_count == 0 && !grant_is_any(shuntd))
        return 0;
    for (unsigned i = 0; i < 2 && code == 0; i++) {
        struct operation *operation = prefetch_operation_on(shuntd, message, i);
        if (operation == NULL || (!operation_is_prefetched(operation) && !operation_has_grant(operation)))
            continue;
        code = grant_settle(shuntd, operation);
        if (code == 0 && (operation = prefetch_operation_on(shuntd, message, i)) != NULL &&
            operation_is_prefetched(operation) && !prefetch_is_for(operation, message, i))
            code = prefetch_give_back(shuntd, operation);
    }
    return code;
}

/* 0, or a fatal -errno. */
static int prefetch_look_after(struct shuntd *shuntd, struct operation *operation, uint64_t since)
{
    const struct stream *stream = prefetch_stream_of(shuntd, operation);
    const bool unused = stream->used < since && !BROKEN("unused-kept");
    if (!operation_may_be_attached(operation) || (!unused && operation->id > stream->behind) ||
        !grant_take_back(shuntd, operation))
        return 0;
    return unused ? prefetch_give_back(shuntd, operation) : prefetch_release(shuntd, operation);
}

/* What is granted to a client, or to all (0); what was taken lets nothing follow. */
static int prefetch_settle(struct shuntd *shuntd, uint64_t client)
{
    shuntd->prefetch->forgets = true;
    int code = grant_settle_client(shuntd, client);
    shuntd->prefetch->forgets = false;
    return code;
}

int prefetch_forget(struct shuntd *shuntd)
{
    struct link *operations = &shuntd->home->operations, *next;
    int code = prefetch_settle(shuntd, 0);
    for (struct link *link = operations->next; link != operations; link = next) {
        struct operation *operation = LINK_OF(link, struct operation, all);
        next = link->next;
        if (!operation_is_prefetched(operation))
            continue;
        operation_abandon(operation);
        if (operation->pending.op == 0)
            operation_end(shuntd->home, operation);
    }
    return code;
}

int prefetch_client_exits(struct shuntd *shuntd, uint64_t client)
{
    struct link *operations = &shuntd->home->operations, *next;
    int code = prefetch_settle(shuntd, client);
    for (struct link *link = operations->next; link != operations && shuntd->home->prefetched_count > 0 && code == 0;
         link = next) {
        struct operation *operation = LINK_OF(link, struct operation, all);
        next = link->next;
        if (operation_may_be_attached(operation) && prefetch_stream_of(shuntd, operation)->client == client)
            code = prefetch_release(shuntd, operation);
    }
    return code;
}

int prefetch_leave_leaf(struct shuntd *shuntd, const struct home_dir *dir, uint32_t leaf)
{
    struct link *operations = &shuntd->home->operations, *next;
    int code = 0;
    if (shuntd->home->prefetched_count == 0 || !home_leaf_is_retired(&dir->leaves, leaf))
        return 0;
    for (struct link *link = operations->next; link != operations && code == 0; link = next) {
        struct operation *operation = LINK_OF(link, struct operation, all);
        next = link->next;
        if (!operation_may_be_attached(operation) || operation->kind != OPERATION_CREATE || operation->dir != dir ||
            operation->place.leaf != leaf || !grant_take_back(shuntd, operation))
            continue;
        prefetch_stream_of(shuntd, operation)->reserved = prefetch_stream_of(shuntd, operation)->granted =
            0; /* they are predicted again */
        code = prefetch_release(shuntd, operation);
    }
    return code;
}

int prefetch_tick(struct shuntd *shuntd)
{
    struct link *operations = &shuntd->home->operations, *next;
    const uint64_t since = shuntd->stop != 0 ? UINT64_MAX : shuntd->prefetch->ticked;
    shuntd->prefetch->ticked = shuntd->now;
    int code = shuntd->stop != 0 ? grant_settle_client(shuntd, 0) : grant_see_all(shuntd);
    if (shuntd->home->prefetched_count == 0)
        return code;
    for (struct link *link = operations->next; link != operations && code == 0; link = next) {
        next = link->next;
        code = prefetch_look_after(shuntd, LINK_OF(link, struct operation, all), since);
    }
    return code;
}

/* Claiming. */

/* Its home's answer is there already, or on its way, and then goes to the request. */
int prefetch_attach_request(struct shuntd *shuntd, const struct listen_request *request, enum operation_kind kind, bool fits,
                            bool *claimed)
{
    struct operation *operation = prefetch_operation_on(shuntd, &request->message, 0);
    if (operation == NULL || !operation_may_be_attached(operation))
        return 0;
    if (operation->kind != kind || !fits ||
        (kind == OPERATION_CREATE && operation->leaf.generation != operation->dir->leaves.generation))
        return prefetch_give_back(shuntd, operation);
    const struct name_answer answer = {.result = operation_had_entry(operation) ? MESSAGE_EXISTS : 0,
                                       .entry = operation->before};
    *claimed = true;
    shuntd->counts.prefetched++;
    int code = operation_attach_request(shuntd->home, operation, request);
    return code == 0 && operation->pending.op == 0 ? operation->pending.completion(shuntd, operation, &answer) : code;
}

/* Reserving. */

static bool prefetch_is_remote(const struct shuntd *shuntd, uint32_t shard)
{
    return shuntd->route.home[shard] != shuntd->me.number && !route_is_awaited(&shuntd->route, shard);
}

static bool prefetch_is_all_here(const struct shuntd *shuntd, const struct home_dir *dir)
{
    return dir->delegation != 0 || route_is_sole(&shuntd->route);
}

static bool prefetch_is_here(const struct shuntd *shuntd, const struct home_dir *dir, uint32_t shard)
{
    return prefetch_is_all_here(shuntd, dir) || route_is_here(&shuntd->route, shuntd->me.number, shard);
}

bool prefetch_is_elsewhere(const struct shuntd *shuntd, const struct home_dir *dir, const char *name, size_t length)
{
    return !prefetch_is_all_here(shuntd, dir) && prefetch_is_remote(shuntd, record_shard(dir->id, record_hash(name, length)));
}

/* Where a name is to be made. 1: not in a branch, or not yet. */
static int prefetch_choose(struct shuntd *shuntd, const struct operation *made, const char *name, size_t length,
                           struct record_entry *entry)
{
    *entry = (struct record_entry){.type = DT_REG, .state = RECORD_PENDING};
    uint32_t fresh;
    int code =
        placement_choose_prefetched(shuntd, made->dir, name, length, prefetch_stream_of(shuntd, made)->client, entry, &fresh);
    return code == -EAGAIN || (code == 0 && entry->branch == 0) ? 1 : code;
}

int prefetch_ask(struct shuntd *shuntd, const struct prefetch_name *what)
{
    const bool makes = what->kind == OPERATION_CREATE;
    if (shuntd->home->prefetched_count >= ALL_MAX)
        return 1;
    if (operation_find(shuntd->home, what->dir->id, what->name, what->length) != NULL)
        return 0;
    struct operation *operation = operation_begin(shuntd->home, what->kind, what->dir, what->name, what->length, NULL);
    if (operation == NULL)
        return -ENOMEM;
    operation->qp = what->qp;
    operation->place = what->entry;
    operation->leaf.generation = what->dir->leaves.generation;
    int code = makes ? operation_count_in_leaf(operation) : 0;
    return code == 0
               ? home_rpc_request(shuntd, operation, makes || what->kind == OPERATION_RENAME_TO ? NAME_RESERVE : NAME_CLAIM,
                                  NAME_PREFETCH, &what->entry, what->completion)
               : code;
}

/* What its home was asked of the last name it is asked of the next, too. 1: not of that one, nor of those after it. */
static int prefetch_like(struct shuntd *shuntd, const struct operation *last, const char *name, size_t length,
                         struct prefetch_name *next)
{
    *next = (struct prefetch_name){.kind = last->kind,
                                   .dir = last->dir,
                                   .qp = last->qp,
                                   .name = name,
                                   .length = length,
                                   .entry = last->pending.entry,
                                   .completion = last->pending.completion};
    return last->kind == OPERATION_CREATE ? prefetch_choose(shuntd, last, name, length, &next->entry) : 0;
}

static int prefetch_ask_like(struct shuntd *shuntd, const struct operation *last, const char *name, size_t length)
{
    struct prefetch_name next;
    int code = prefetch_like(shuntd, last, name, length, &next);
    return code == 0 ? prefetch_ask(shuntd, &next) : code;
}

/* Many streams have less each, so that each has some. */
static unsigned prefetch_window_max(const struct shuntd *shuntd)
{
    return shuntd->home->prefetched_count < ALL_MAX / 2 ? WINDOW_MAX : WINDOW_CROWDED;
}

static unsigned prefetch_next_window(const struct shuntd *shuntd, unsigned window)
{
    const unsigned most = prefetch_window_max(shuntd), next = window == 0 ? WINDOW_MIN : 4 * window;
    return next < most ? next : most;
}

unsigned prefetch_widen(const struct shuntd *shuntd, struct stream *stream)
{
    if (stream->reserved > stream->window / 2 || !oom_reserve_is_there())
        return 0;
    stream->window = prefetch_next_window(shuntd, stream->window);
    if (stream->window >= WINDOW_CROWDED)
        stream->run = RUN_MIN; /* it goes well */
    return stream->window;
}

/* Once half of what was predicted is made, so that the answers are there before they are needed. */
static int prefetch_reserve_more(struct shuntd *shuntd, struct stream *stream, const struct operation *last)
{
    char name[RECORD_NAME_MAX];
    const unsigned window = prefetch_widen(shuntd, stream);
    int code = 0;
    for (size_t length; stream->reserved < window && code == 0; stream->reserved += code == 0) {
        if ((length = sequence_predict(&stream->sequence, stream->reserved + 1, name)) == 0)
            return 0;
        if (prefetch_is_remote(shuntd, record_shard(last->dir->id, record_hash(name, length))))
            code = prefetch_ask_like(shuntd, last, name, length);
    }
    return code < 0 ? code : 0;
}

/* Granting. */

static bool prefetch_may_begin(const struct shuntd *shuntd, const struct home_dir *dir, const char *name, size_t length)
{
    return prefetch_is_here(shuntd, dir, record_shard(dir->id, record_hash(name, length))) && !dir->reports_idle &&
           !dir->recalled;
}

int prefetch_begin(struct shuntd *shuntd, const struct prefetch_name *what, struct operation **operation)
{
    *operation = operation_find(shuntd->home, what->dir->id, what->name, what->length);
    if (*operation != NULL || !prefetch_may_begin(shuntd, what->dir, what->name, what->length))
        return 0;
    int code = prefetch_ask(shuntd, what);
    *operation = code == 0 ? operation_find(shuntd->home, what->dir->id, what->name, what->length) : NULL;
    return code < 0 ? code : 0;
}

static int prefetch_begin_like(struct shuntd *shuntd, const struct operation *like, const char *name, size_t length,
                               struct operation **operation)
{
    struct prefetch_name next;
    int code = prefetch_like(shuntd, like, name, length, &next);
    *operation = NULL;
    return code == 0 ? prefetch_begin(shuntd, &next, operation) : code < 0 ? code : 0;
}

bool prefetch_may_be_granted(const struct operation *operation, enum operation_kind kind, uint32_t qp)
{
    return operation != NULL && prefetch_knows(operation) && !operation_is_abandoned(operation) && operation->kind == kind &&
           operation->qp == qp && operation->leaf.generation == operation->dir->leaves.generation;
}

static bool prefetch_may_be_granted_like(const struct shuntd *shuntd, const struct operation *operation,
                                         const struct operation *like)
{
    return prefetch_may_be_granted(operation, like->kind, like->qp) &&
           (like->kind != OPERATION_CREATE || placement_dir_redirects(shuntd, operation->dir));
}

/* At first a few, as many as went before in a row. */
unsigned prefetch_to_be_granted(unsigned run)
{
    return run < WINDOW_MIN ? WINDOW_MIN : run < CHANNEL_GRANTS ? run : CHANNEL_GRANTS;
}

/* A thread that goes over from one kind of call to another has no use for what it was granted before. */
bool prefetch_has_room(struct shuntd *shuntd, const struct stream *stream, uint32_t qp)
{
    struct operation *there = grant_in_the_way(shuntd, qp);
    const struct stream *other = there != NULL ? prefetch_stream_of(shuntd, there) : NULL;
    return there == NULL || (operation_is_prefetched(there) && other != stream && other->used + IDLE < shuntd->now &&
                             grant_take_back(shuntd, there));
}

/* A create with the rename that is to follow, if that is foreseen. 0, 1: there is no room; or a fatal -errno. */
static int prefetch_grant(struct shuntd *shuntd, const struct stream *stream, struct operation *operation)
{
    struct operation *to = NULL;
    int code = operation->kind == OPERATION_CREATE ? rename_ahead_find_new(shuntd, operation, stream->granted + 1, &to) : 0;
    if (code != 0 || (to != NULL && grant_make_pair(shuntd, operation, to, stream->client)))
        return code;
    return grant_make(shuntd, operation, stream->client) ? 0 : 1;
}

/* In the order in which they are to be asked for, as far as their homes have given them. */
static int prefetch_grant_more(struct shuntd *shuntd, struct stream *stream, const struct operation *like)
{
    char name[RECORD_NAME_MAX];
    struct operation *operation;
    int code = 0;
    const unsigned most = prefetch_to_be_granted(stream->sequence.run);
    for (; stream->granted < most && prefetch_has_room(shuntd, stream, like->qp); stream->granted++) {
        const size_t length = sequence_predict(&stream->sequence, stream->granted + 1, name);
        if (length == 0 || (code = prefetch_begin_like(shuntd, like, name, length, &operation)) != 0 ||
            !prefetch_may_be_granted_like(shuntd, operation, like) ||
            (!operation_has_grant(operation) && (code = prefetch_grant(shuntd, stream, operation)) != 0))
            break;
    }
    return code < 0 ? code : 0;
}

int prefetch_granted(struct shuntd *shuntd, const struct operation *operation)
{
    struct stream *stream = prefetch_stream_of(shuntd, operation);
    const bool is_late = operation->pending.member != shuntd->me.number; /* else it is being granted (predicted) */
    if (!is_late || !dirid_equal(stream->dir, operation->dir->id) || operation->id <= stream->behind)
        return 0;
    return operation_renames(operation) ? rename_ahead_grant_more(shuntd, operation->dir, operation->qp)
                                        : prefetch_grant_more(shuntd, stream, operation);
}

void prefetch_begin_again(struct stream *stream, uint64_t client, struct dirid dir)
{
    stream->client = client;
    stream->dir = dir;
    stream->sequence.length = 0;
    stream->sequence.run = 0;
    stream->sequence.step = 0;
    stream->run = RUN_MIN;
}

void prefetch_breaks_off(struct shuntd *shuntd, struct stream *stream)
{
    stream->window = stream->reserved = stream->granted = 0;
    stream->behind = shuntd->home->last_id;
}

int prefetch_follow(struct shuntd *shuntd, const struct operation *last)
{
    const struct home_dir *dir = last->dir;
    struct stream *stream = prefetch_stream_of(shuntd, last);
    if (last->place.branch == 0 || shuntd->stop != 0 || shuntd->prefetch->forgets)
        return 0;
    if (stream->client != last->client || !dirid_equal(stream->dir, dir->id))
        prefetch_begin_again(stream, last->client, dir->id);
    stream->used = shuntd->now;
    if (sequence_add(&stream->sequence, last->name, last->length) == 0) {
        prefetch_breaks_off(shuntd, stream);
        grant_take_back_like(shuntd, last);
    }
    stream->reserved -= stream->reserved > 0;
    stream->granted -= stream->granted > 0;
    if (stream->sequence.run >= WINDOW_MAX)
        stream->run = RUN_MIN; /* it goes well */
    if (stream->sequence.run < stream->run && !BROKEN("ahead-late"))
        return 0;
    int code = prefetch_is_all_here(shuntd, dir) ? 0 : prefetch_reserve_more(shuntd, stream, last);
    return code == 0 && oom_reserve_is_there() ? prefetch_grant_more(shuntd, stream, last) : code;
}
