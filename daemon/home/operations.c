/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "home/home.h"
#include "index/index.h"
#include "home/state.h"

static struct operation **operations_bucket_of(struct home *home, struct dirid dir, uint64_t hash)
{
    return &home->names[(hash ^ dir.ino * 0x9e3779b97f4a7c15ull) % HOME_BUCKETS];
}

struct operation *operation_find(struct home *home, struct dirid dir, const char *name, size_t length)
{
    struct operation *operation = *operations_bucket_of(home, dir, record_hash(name, length));
    for (; operation != NULL; operation = operation->next)
        if (dirid_equal(operation->dir->id, dir) && operation->length == length && memcmp(operation->name, name, length) == 0)
            return operation;
    return NULL;
}

struct operation *operation_find_own(struct home *home, struct dirid dir, const char *name, size_t length, uint64_t client)
{
    struct operation *operation = operation_find(home, dir, name, length);
    return operation != NULL && operation->client == client ? operation : NULL;
}

static struct operation **operations_number_of(struct home *home, uint64_t id)
{
    struct operation **at = &home->numbers[id % HOME_BUCKETS];
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next_id;
    return at;
}

struct operation *operation_by_id(struct home *home, uint64_t id)
{
    return *operations_number_of(home, id);
}

static bool operations_has_name(const struct operation *operation)
{
    return operation->kind != OPERATION_LOOKUP;
}

static void operations_enter(struct home *home, struct operation *operation)
{
    struct operation **number = operations_number_of(home, operation->id = ++home->last_id);
    *number = operation;
    list_append(&home->operations, &operation->all);
    home->operation_count++;
    home->prefetched_count += operation_is_prefetched(operation);
    if (!operations_has_name(operation))
        return;
    struct operation **bucket = operations_bucket_of(home, operation->dir->id, operation->hash);
    operation->next = *bucket;
    *bucket = operation;
}

/* Whose it is, and the request as it came, to begin again. */
static int operations_answers_to(struct operation *operation, const struct listen_request *request)
{
    operation->client = request->client;
    operation->qp = request->qp;
    operation->tag = request->message.tag;
    operation->flags = request->message.flags;
    operation->request = home_copy_request(request);
    return operation->request != NULL ? 0 : -ENOMEM;
}

struct operation *operation_begin(struct home *home, enum operation_kind kind, struct home_dir *dir, const char *name,
                                  size_t length, const struct listen_request *request)
{
    struct operation *operation = malloc(sizeof *operation); /* glibc's calloc passes by what a thread has just freed */
    if (operation == NULL)
        return NULL;
    memset(operation, 0, offsetof(struct operation, name));
    operation->kind = kind;
    operation->dir = dir;
    operation->length = (uint16_t)length;
    operation->hash = record_hash(name, length);
    operation->shard = record_shard(dir->id, operation->hash);
    memcpy(operation->name, name, length);
    list_init(&operation->blocked);
    operation->was_prefetched = request == NULL;
    operation->forgotten = home->forgotten;
    operation->state = request == NULL ? OPERATION_PREFETCHED : OPERATION_WANTED;
    if (request != NULL && operations_answers_to(operation, request) != 0) {
        free(operation);
        return NULL;
    }
    operations_enter(home, operation);
    dir->operations++;
    return operation;
}

int operation_attach_request(struct home *home, struct operation *operation, const struct listen_request *request)
{
    home->prefetched_count--;
    operation->state = operation_is_abandoned(operation) ? OPERATION_ABANDONED : OPERATION_WANTED;
    return request != NULL ? operations_answers_to(operation, request) : 0;
}

void operation_keep(struct home *home, struct operation *operation, const struct record_entry *made)
{
    operation->kind = OPERATION_RENAME_FROM;
    operation->state = OPERATION_PREFETCHED;
    operation->was_prefetched = true;
    operation->claim = CLAIM_EXISTING;
    operation->before = *made;
    operation->before.state = RECORD_LIVE;
    operation->client = 0;
    operation->tag = 0;
    operation->flags = 0;
    operation->dir_change = (struct operation_dir_change){0};
    operation->grant.began = 0;
    memset(&operation->rename, 0, sizeof operation->rename);
    free(operation->request);
    operation->request = NULL;
    home->prefetched_count++;
    home_wake(home, &operation->blocked);
}

int operation_note_change(struct home *home, struct operation *operation)
{
    const struct home_times before = operation->dir->times;
    const uint64_t began = operation->grant.began;
    int code = home_dir_note_change(home, operation->dir, began != 0 ? began : clock_files());
    operation->dir_change.at_before = before.changed;
    operation->dir_change.written_before = before.written;
    operation->dir_change.at = operation->dir->times.changed;
    operation->dir_change.number = operation->dir->change_count;
    return code;
}

/* What another node may have seen stays. */
int operation_undo_change(struct home *home, struct operation *operation)
{
    struct home_dir *dir = operation->dir;
    if (operation->dir_change.number == 0 || operation->dir_change.number != dir->change_count ||
        operation->dir_change.at != dir->times.changed || operation->dir_change.at == operation->dir_change.at_before ||
        operation->dir_change.at <= dir->announced)
        return 0;
    return home_dir_undo_change(home, dir, operation->dir_change.at_before, operation->dir_change.written_before);
}

static void operations_leave(struct home *home, struct operation *operation)
{
    *operations_number_of(home, operation->id) = operation->next_id;
    list_remove(&operation->all);
    home->operation_count--;
    home->prefetched_count -= operation_is_prefetched(operation);
    if (!operations_has_name(operation))
        return;
    struct operation **at = operations_bucket_of(home, operation->dir->id, operation->hash);
    while (*at != operation)
        at = &(*at)->next;
    *at = operation->next;
}

void operation_await(struct home *home, uint64_t id)
{
    struct operation *operation = operation_by_id(home, id);
    if (operation == NULL || operation->awaited)
        return;
    operation->awaited = true;
    home->awaited++;
}

int operation_count_in_leaf(struct operation *operation)
{
    operation->leaf.counted = true;
    return home_leaf_add(&operation->dir->leaves, operation->place.leaf, 1);
}

void operation_end(struct home *home, struct operation *operation)
{
    struct home_dir *dir = operation->dir;
    operations_leave(home, operation);
    if (operation->leaf.counted && operation->leaf.generation == dir->leaves.generation)
        home_leaf_add(&dir->leaves, operation->place.leaf, -1); /* there is room for it already */
    home->awaited -= operation->awaited;
    home_wake(home, &operation->blocked);
    free(operation->request);
    free(operation);
    dir->operations--;
    home_dir_release(home, dir);
}

static bool operations_is_over(struct home *home, const struct operation *operation, uint64_t client)
{
    if (operation_is_abandoned(operation) || operation_is_prefetched(operation))
        return false;
    return client != 0 ? operation->client == client
                       : operation->state == OPERATION_GIVEN_UP ||
                             listen_gave_up(home->uses.listen, operation->qp, operation->client, operation->tag);
}

struct operation *operation_next_of_client(struct home *home, uint64_t client)
{
    struct link *operations = &home->operations;
    for (struct link *link = operations->next; link != operations; link = link->next)
        if (operations_is_over(home, LINK_OF(link, struct operation, all), client))
            return LINK_OF(link, struct operation, all);
    return NULL;
}

void operation_give_up(struct home *home, uint64_t client, uint32_t qp, uint32_t tag)
{
    for (struct link *link = home->operations.next; link != &home->operations; link = link->next) {
        struct operation *operation = LINK_OF(link, struct operation, all);
        const bool is_its = operation->client == client && operation->qp == qp && operation->tag == tag;
        if (is_its && operation->state == OPERATION_WANTED)
            operation->state = OPERATION_GIVEN_UP;
    }
}

int operation_each_claimed(struct home *home, int (*each)(void *context, const struct operation *), void *context)
{
    int code = 0;
    for (struct link *link = home->operations.next; link != &home->operations && code == 0; link = link->next) {
        const struct operation *operation = LINK_OF(link, struct operation, all);
        code = operation_is_claimed(operation) ? each(context, operation) : 0;
    }
    return code;
}

unsigned operation_count(struct home *home)
{
    return home->operation_count;
}

struct blocked_request *home_copy_request(const struct listen_request *request)
{
    struct blocked_request *blocked = malloc(sizeof *blocked + request->size);
    if (blocked == NULL)
        return NULL;
    list_init(&blocked->link);
    blocked->qp = request->qp;
    blocked->client = request->client;
    blocked->size = request->size;
    blocked->since = 0;
    memcpy(blocked->bytes, request->bytes, request->size);
    return blocked;
}

void home_restore_request(const struct blocked_request *blocked, struct listen_request *request)
{
    request->qp = blocked->qp;
    request->client = blocked->client;
    request->size = blocked->size;
    memcpy(request->bytes, blocked->bytes, blocked->size);
    message_decode(&request->message, request->bytes, blocked->size); /* was decoded before */
}

int home_block(struct home *home, struct link *waiting, const struct listen_request *request)
{
    struct blocked_request *blocked = home_copy_request(request);
    if (blocked == NULL)
        return -ENOMEM;
    list_append(waiting, &blocked->link);
    blocked->since = *home->uses.now;
    ++*home->uses.blocked;
    home->blocked++;
    return 0;
}

static void operations_set_trunk(struct blocked_request *blocked)
{
    struct message message;
    if (message_decode(&message, blocked->bytes, blocked->size) != 0 ||
        (message.type != MESSAGE_CREATE && message.type != MESSAGE_RENAME))
        return;
    uint8_t bytes[MESSAGE_SHORT + MESSAGE_TEXT_MAX];
    message.flags |= MESSAGE_TRUNK;
    memcpy(blocked->bytes, bytes, message_encode(bytes, blocked->size, &message));
}

int home_pin_to_trunk(struct link *waiting)
{
    for (struct link *link = waiting->next; link != waiting; link = link->next)
        operations_set_trunk(LINK_OF(link, struct blocked_request, link));
    return 0;
}

void home_blocked_free(struct link *waiting)
{
    for (struct link *link; (link = list_take(waiting)) != NULL;)
        free(LINK_OF(link, struct blocked_request, link));
}

void home_wake(struct home *home, struct link *waiting)
{
    list_move(&home->ready_requests, waiting);
}

bool home_has_waiting(const struct home *home)
{
    return home->blocked > 0 || home->waiting > 0 || home->awaited > 0;
}

bool home_has_ready(const struct home *home)
{
    return !list_empty(&home->ready_requests) || !list_empty(&home->questions) || !list_empty(&home->notifications) ||
           !list_empty(&home->ready_collectives);
}

void home_retry(struct home *home, struct blocked_request *blocked)
{
    home->blocked++;
    list_append(&home->ready_requests, &blocked->link);
}

struct blocked_request *home_next_retry(struct home *home)
{
    struct link *link = list_take(&home->ready_requests);
    struct blocked_request *blocked = link != NULL ? LINK_OF(link, struct blocked_request, link) : NULL;
    home->blocked -= link != NULL;
    if (blocked != NULL && blocked->since != 0)
        *home->uses.waited += *home->uses.now - blocked->since;
    return blocked;
}
