/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "prefetch/grant.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hook.h"
#include "coordinator/dir_times.h"
#include "home/home.h"
#include "reply/reply.h"
#include "request/channel.h"

/* So many grants after the one that woke the daemon there are still some left. */
#define CALLS_EACH (CHANNEL_GRANTS / 2)

/* The grants of a queue pair, in a ring: they are taken about in the order in which they were made. */
struct qp {
    struct link link; /* while it has some */
    uint64_t client;
    uint64_t operation[CHANNEL_GRANTS]; /* by its number, 0: the slot is free */
    unsigned used, next;
    uint64_t made; /* the operation of what its process has made last and may rename, or one that is over */
};

struct grants {
    struct link qps; /* that have some */
    unsigned qp_count;
    struct qp qp[CHANNEL_QPS];
};

int grant_create(struct grants **to)
{
    struct grants *grants = calloc(1, sizeof *grants);
    if (grants == NULL)
        return -ENOMEM;
    list_init(&grants->qps);
    for (unsigned i = 0; i < CHANNEL_QPS; i++)
        list_init(&grants->qp[i].link);
    *to = grants;
    return 0;
}

void grant_destroy(struct grants *grants)
{
    free(grants);
}

static struct qp *grant_qp_of(const struct shuntd *shuntd, const struct operation *operation)
{
    return &shuntd->grants->qp[operation->qp];
}

static unsigned grant_slot_of(const struct operation *operation)
{
    return operation->grant.slot - 1u;
}

bool grant_is_any(const struct shuntd *shuntd)
{
    return shuntd->grants->qp_count > 0;
}

unsigned grant_count(const struct shuntd *shuntd)
{
    const struct link *qps = &shuntd->grants->qps;
    unsigned count = 0;
    for (const struct link *link = qps->next; link != qps; link = link->next)
        count += LINK_OF(link, struct qp, link)->used;
    return count;
}

struct operation *grant_in_the_way(const struct shuntd *shuntd, uint32_t number)
{
    const struct qp *qp = &shuntd->grants->qp[number];
    return qp->operation[qp->next] != 0 ? operation_by_id(shuntd->home, qp->operation[qp->next]) : NULL;
}

static void grant_enter(struct shuntd *shuntd, struct operation *operation, uint64_t client)
{
    struct qp *qp = grant_qp_of(shuntd, operation);
    operation->grant.slot = (uint16_t)(qp->next + 1);
    qp->client = client;
    qp->operation[qp->next] = operation->id;
    qp->next = (qp->next + 1) % CHANNEL_GRANTS;
    if (qp->used++ > 0)
        return;
    list_append(&shuntd->grants->qps, &qp->link);
    shuntd->grants->qp_count++;
}

static void grant_leave(struct shuntd *shuntd, struct operation *operation)
{
    struct qp *qp = grant_qp_of(shuntd, operation);
    qp->operation[grant_slot_of(operation)] = 0;
    operation->grant.slot = 0;
    if (--qp->used > 0)
        return;
    list_remove(&qp->link);
    shuntd->grants->qp_count--;
}

/* A place in the queue pair is there. */
static bool grant_put(struct shuntd *shuntd, struct operation *operation, uint64_t client, const struct record_entry *entry,
                      struct listen_grant *grant)
{
    const struct qp *qp = grant_qp_of(shuntd, operation);
    struct message at = {0};
    char place[REPLY_PLACE_MAX];
    if (grant_in_the_way(shuntd, operation->qp) != NULL || (qp->used > 0 && qp->client != client))
        return false;
    reply_put_place(shuntd, operation->dir, entry, place, &at, 0);
    grant->calls = qp->next % CALLS_EACH == CALLS_EACH - 1;
    grant->dir = operation->dir->id;
    grant->entry = *entry;
    grant->name = operation->name;
    grant->name_length = operation->length;
    grant->place = place;
    grant->place_length = at.answer.place[0].length;
    if (!listen_grant(shuntd->listen, operation->qp, qp->next, grant))
        return false;
    grant_enter(shuntd, operation, client);
    return true;
}

bool grant_make(struct shuntd *shuntd, struct operation *operation, uint64_t client)
{
    const bool makes = operation->kind == OPERATION_CREATE;
    struct listen_grant grant = {.type = makes ? MESSAGE_CREATE : MESSAGE_UNLINK};
    return grant_put(shuntd, operation, client, makes ? &operation->place : &operation->before, &grant);
}

bool grant_make_pair(struct shuntd *shuntd, struct operation *from, struct operation *to, uint64_t client)
{
    const bool makes = from->kind == OPERATION_CREATE;
    struct listen_grant grant = {.type = makes ? MESSAGE_CREATE : MESSAGE_RENAME, .to = to->name, .to_length = to->length};
    if (!grant_put(shuntd, from, client, makes ? &from->place : &from->before, &grant))
        return false;
    from->rename.partner = to;
    to->rename.partner = from;
    return true;
}

/* To be made, and then renamed: the new name is granted with it. */
static bool grant_is_of_two(const struct operation *operation)
{
    return operation->kind == OPERATION_CREATE && operation->rename.partner != NULL;
}

/* What was granted together is apart again. */
static void grant_part(struct operation *operation)
{
    struct operation *partner = operation->rename.partner;
    if (partner != NULL)
        operation->rename.partner = partner->rename.partner = NULL;
}

/* Nobody has taken it, or its process has, and goes on by messages. False: it has taken it, or goes on with it, meanwhile. */
static bool grant_close(struct shuntd *shuntd, struct operation *operation, enum listen_granted what)
{
    if (!listen_close_grant(shuntd->listen, operation->qp, grant_slot_of(operation), what))
        return false;
    grant_leave(shuntd, operation);
    grant_part(operation);
    return true;
}

bool grant_take_back(struct shuntd *shuntd, struct operation *any)
{
    struct operation *operation = operation_granted_as(any);
    if (!operation_has_grant(operation))
        return true;
    if (!BROKEN("grant-kept"))
        return grant_close(shuntd, operation, LISTEN_GRANTED);
    listen_end_grant(shuntd->listen, operation->qp, grant_slot_of(operation)); /* whichever side has taken it */
    grant_leave(shuntd, operation);
    grant_part(operation);
    return true;
}

void grant_ends(struct shuntd *shuntd, struct operation *operation)
{
    if (operation->grant.slot == 0)
        return;
    listen_end_grant(shuntd->listen, operation->qp, grant_slot_of(operation));
    grant_leave(shuntd, operation);
    if (grant_is_of_two(operation))
        grant_part(operation);
}

static int grant_attach(struct shuntd *shuntd, struct operation *operation)
{
    operation->client = grant_qp_of(shuntd, operation)->client;
    shuntd->counts.prefetched++;
    return operation_attach_request(shuntd->home, operation, NULL);
}

static int grant_begin(struct shuntd *shuntd, struct operation *operation)
{
    switch (operation->kind) {
    case OPERATION_CREATE:
        return shuntd->prefetch_handlers->create_begins(shuntd, operation);
    case OPERATION_UNLINK:
        return shuntd->prefetch_handlers->unlink_begins(shuntd, operation);
    default:
        return shuntd->prefetch_handlers->rename_begins(shuntd, operation);
    }
}

/* It was taken: as if its process had asked for it then, and been answered. */
static int grant_claim(struct shuntd *shuntd, struct operation *operation, uint64_t taken_at)
{
    const uint64_t now = clock_files();
    struct operation *partner = operation_partner(operation);
    operation->grant.began = taken_at < now ? taken_at : now;
    int code = grant_attach(shuntd, operation);
    if (code == 0 && partner != NULL)
        code = grant_attach(shuntd, partner);
    return code == 0 ? grant_begin(shuntd, operation) : code;
}

/* What was made is being renamed: its create is over, and the rename, for which both names are held, has begun. */
static int grant_goes_on(struct shuntd *shuntd, struct operation *operation, uint64_t taken_at, uint64_t made)
{
    int code = shuntd->prefetch_handlers->create_goes_on(shuntd, operation, made);
    return code == 0 ? grant_claim(shuntd, operation, taken_at) : code;
}

/* A number that is none is a process's mistake. */
static int grant_finish(struct shuntd *shuntd, struct operation *operation, uint64_t made)
{
    const struct record_entry entry = {.type = DT_REG, .ino = made};
    if (operation->kind == OPERATION_RENAME_FROM)
        return shuntd->prefetch_handlers->rename_succeeded(shuntd, operation);
    return operation->kind == OPERATION_CREATE && made == 0
               ? shuntd->prefetch_handlers->settle_by_disk(shuntd, operation)
               : shuntd->prefetch_handlers->succeeded(shuntd, operation, &entry, (struct dirid){0, 0});
}

/* How far it is followed. */
enum grant_look {
    GRANT_LOOKS, /* what was made, and may be renamed then, stays as it is */
    GRANT_SEES,  /* ... is over */
    GRANT_ENDS   /* ... also what is still being made: its process says by a message how that went */
};

static int grant_look_at(struct shuntd *, struct operation *, enum grant_look);

/* A thread that has taken another name renames the one before no more. */
static int grant_passes(struct shuntd *shuntd, const struct operation *operation)
{
    struct qp *qp = grant_qp_of(shuntd, operation);
    struct operation *made = qp->made != 0 && qp->made != operation->id ? operation_by_id(shuntd->home, qp->made) : NULL;
    qp->made = grant_is_of_two(operation) ? operation->id : 0;
    return made != NULL && made->grant.slot != 0 ? grant_look_at(shuntd, made, GRANT_SEES) : 0;
}

static int grant_look_at_pair(struct shuntd *shuntd, struct operation *operation, enum grant_look look,
                              enum listen_granted what, uint64_t taken_at, uint64_t made)
{
    if ((what == LISTEN_MOVING || what == LISTEN_MOVED) && made != 0) {
        int code = grant_goes_on(shuntd, operation, taken_at, made);
        return code == 0 && what == LISTEN_MOVED ? grant_finish(shuntd, operation, made) : code;
    }
    if (look == GRANT_LOOKS || (look == GRANT_SEES && what == LISTEN_TAKEN))
        return 0;
    if (!grant_close(shuntd, operation, what))
        return grant_look_at(shuntd, operation, look);
    return what == LISTEN_DONE ? grant_finish(shuntd, operation, made) : 0;
}

static int grant_look_at(struct shuntd *shuntd, struct operation *operation, enum grant_look look)
{
    uint64_t taken_at, made;
    const enum listen_granted what = listen_granted(shuntd->listen, operation->qp, grant_slot_of(operation), &taken_at, &made);
    int code = 0;
    if (what == LISTEN_GRANTED || BROKEN("grant-unseen"))
        return 0;
    if (operation_is_prefetched(operation))
        code = grant_passes(shuntd, operation);
    if (code == 0 && operation_is_prefetched(operation))
        code = grant_claim(shuntd, operation, taken_at);
    if (code != 0)
        return code;
    if (grant_is_of_two(operation))
        return grant_look_at_pair(shuntd, operation, look, what, taken_at, made);
    const bool is_over = what == LISTEN_DONE || (what == LISTEN_MOVED && operation->kind == OPERATION_RENAME_FROM);
    return is_over ? grant_finish(shuntd, operation, made) : 0;
}

static int grant_see(struct shuntd *shuntd, struct operation *operation)
{
    return grant_look_at(shuntd, operation, GRANT_SEES);
}

static int grant_glance(struct shuntd *shuntd, struct operation *operation)
{
    return grant_look_at(shuntd, operation, GRANT_LOOKS);
}

int grant_settle(struct shuntd *shuntd, struct operation *any)
{
    struct operation *operation = operation_granted_as(any);
    if (!operation_has_grant(operation) || (operation_is_prefetched(operation) && grant_take_back(shuntd, operation)))
        return 0;
    return grant_look_at(shuntd, operation, GRANT_ENDS);
}

typedef int each_grant(struct shuntd *, struct operation *);

/* Those of a directory (NULL: all), the oldest first. What follows from one may add others. */
static int grant_in_qp(struct shuntd *shuntd, struct qp *qp, const struct home_dir *dir, each_grant *each)
{
    const unsigned first = qp->next;
    int code = 0;
    for (unsigned i = 0; i < CHANNEL_GRANTS && qp->used > 0 && code == 0; i++) {
        const uint64_t id = qp->operation[(first + i) % CHANNEL_GRANTS];
        struct operation *operation = id != 0 ? operation_by_id(shuntd->home, id) : NULL;
        code = operation != NULL && (dir == NULL || operation->dir == dir) ? each(shuntd, operation) : 0;
    }
    return code;
}

/* ... of a client (0: all). Queue pairs that come meanwhile are left out. */
static int grant_in_qps(struct shuntd *shuntd, const struct home_dir *dir, uint64_t client, each_grant *each)
{
    struct link *qps = &shuntd->grants->qps;
    int code = 0;
    for (unsigned left = shuntd->grants->qp_count; left > 0 && !list_empty(qps) && code == 0; left--) {
        struct link *link = list_take(qps);
        struct qp *qp = LINK_OF(link, struct qp, link);
        list_append(qps, link);
        code = client == 0 || qp->client == client ? grant_in_qp(shuntd, qp, dir, each) : 0;
    }
    return code;
}

int grant_settle_dir(struct shuntd *shuntd, const struct home_dir *dir)
{
    return grant_in_qps(shuntd, dir, 0, grant_settle);
}

int grant_settle_client(struct shuntd *shuntd, uint64_t client)
{
    return grant_in_qps(shuntd, NULL, client, grant_settle);
}

int grant_see_all(struct shuntd *shuntd)
{
    return grant_in_qps(shuntd, NULL, 0, grant_see);
}

/* With each request of a process that is granted something: as a rule nothing was taken. */
static bool grant_has_taken(struct shuntd *shuntd, uint32_t number)
{
    const struct qp *qp = &shuntd->grants->qp[number];
    for (unsigned i = 0; i < CHANNEL_GRANTS; i++)
        if (qp->operation[i] != 0 && listen_is_taken(shuntd->listen, number, i))
            return true;
    return false;
}

int grant_see_qp(struct shuntd *shuntd, uint32_t qp)
{
    return shuntd->grants->qp[qp].used > 0 && grant_has_taken(shuntd, qp)
               ? grant_in_qp(shuntd, &shuntd->grants->qp[qp], NULL, grant_glance)
               : 0;
}

int grant_step(struct shuntd *shuntd)
{
    int code = 0;
    for (int qp; code == 0 && (qp = listen_next_visited(shuntd->listen)) >= 0;)
        code = grant_see_qp(shuntd, (uint32_t)qp);
    return code;
}

void grant_take_back_like(struct shuntd *shuntd, const struct operation *last)
{
    const struct qp *qp = grant_qp_of(shuntd, last);
    for (unsigned i = 0; i < CHANNEL_GRANTS && qp->used > 0; i++) {
        struct operation *operation = qp->operation[i] != 0 ? operation_by_id(shuntd->home, qp->operation[i]) : NULL;
        if (operation != NULL && operation_is_prefetched(operation) && operation->kind == last->kind)
            grant_take_back(shuntd, operation);
    }
}
