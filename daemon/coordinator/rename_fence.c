/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "coordinator/rename_fence.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>

#include "base/hook.h"
#include "coordinator/dir_times.h"
#include "home/home.h"
#include "rpc/collective.h"

/* A rename, on each node. */
struct rename_fence_job {
    struct link link;
    uint16_t member;
    uint64_t operation; /* of its */
};

/* A rename of this daemon's, from before the others are told until all have heard of its end. */
struct rename_fence_own {
    struct link link;
    uint64_t operation;
    bool is_older; /* than a member that has asked since */
    bool has_ended;
};

static struct rename_fence_job *rename_fence_find(struct shuntd *shuntd, uint16_t member, uint64_t operation)
{
    for (struct link *link = shuntd->rename_fences.next; link != &shuntd->rename_fences; link = link->next) {
        struct rename_fence_job *moving = LINK_OF(link, struct rename_fence_job, link);
        if (moving->member == member && moving->operation == operation)
            return moving;
    }
    return NULL;
}

static void rename_fence_tell_processes(struct shuntd *shuntd)
{
    uint32_t count = 0;
    for (struct link *link = shuntd->rename_fences.next; link != &shuntd->rename_fences; link = link->next)
        count++;
    listen_raise_rename_generation(shuntd->listen, count);
}

static void rename_fence_lift(struct rename_fence_job *moving)
{
    list_remove(&moving->link);
    free(moving);
}

static int rename_fence_raise(struct shuntd *shuntd, uint16_t member, uint64_t operation)
{
    struct rename_fence_job *moving = malloc(sizeof *moving);
    if (moving == NULL)
        return -ENOMEM;
    *moving = (struct rename_fence_job){.member = member, .operation = operation};
    list_append(&shuntd->rename_fences, &moving->link);
    return 0;
}

/* From now on the member that asks is told of what begins: it is known here, or its question would not be. */
static int rename_fence_await_older(struct shuntd *shuntd, struct collective *collective)
{
    bool waits = false;
    for (struct link *link = shuntd->own_fences.next; link != &shuntd->own_fences; link = link->next) {
        struct rename_fence_own *own = LINK_OF(link, struct rename_fence_own, link);
        own->is_older |= !collective_has_waited(collective);
        waits |= own->is_older;
    }
    if (!waits)
        return 0;
    HOOK("fence-awaited");
    collective_wait_on(collective, &shuntd->awaiting_fences);
    return COLLECTIVE_LATER;
}

int rename_fence_part(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    const uint16_t member = message->fence.member;
    if (message->fence.operation == 0)
        return rename_fence_await_older(shuntd, collective);
    struct rename_fence_job *moving = rename_fence_find(shuntd, member, message->fence.operation);
    if (message->fence.ends && moving != NULL)
        rename_fence_lift(moving);
    if (!message->fence.ends && moving == NULL && rename_fence_raise(shuntd, member, message->fence.operation) != 0)
        return -ENOMEM;
    rename_fence_tell_processes(shuntd);
    return 0;
}

void rename_fence_gone(struct shuntd *shuntd, uint16_t member)
{
    for (struct link *link = shuntd->rename_fences.next, *next; link != &shuntd->rename_fences; link = next) {
        next = link->next;
        if (LINK_OF(link, struct rename_fence_job, link)->member == member)
            rename_fence_lift(LINK_OF(link, struct rename_fence_job, link));
    }
    rename_fence_tell_processes(shuntd);
}

static int rename_fence_tell_all(struct shuntd *shuntd, uint64_t operation, bool ends, collective_done *done, void *context)
{
    const struct message message = {.type = MESSAGE_FENCE,
                                    .fence = {.operation = operation, .member = shuntd->me.number, .ends = ends}};
    return collective_begin(shuntd, &message, NULL, done, context);
}

struct step {
    uint64_t operation;
    int (*then)(struct shuntd *, struct operation *);
};

static int rename_fence_all_know(struct shuntd *shuntd, void *context, const struct collective_end *unused)
{
    struct step step = *(struct step *)context;
    free(context);
    struct operation *from = operation_by_id(shuntd->home, step.operation);
    return from != NULL ? step.then(shuntd, from) : 0;
}

bool rename_fence_is_needed(const struct shuntd *shuntd)
{
    return shuntd->session.system == NFS_SUPER_MAGIC || shuntd->root.keeps_names;
}

int rename_fence_begin(struct shuntd *shuntd, struct operation *from, int (*then)(struct shuntd *, struct operation *))
{
    struct step *step = malloc(sizeof *step);
    struct rename_fence_own *own = malloc(sizeof *own);
    if (step == NULL || own == NULL) {
        free(step);
        free(own);
        return -ENOMEM;
    }
    *own = (struct rename_fence_own){.operation = from->id};
    list_append(&shuntd->own_fences, &own->link);
    *step = (struct step){.operation = from->id, .then = then};
    from->rename.fenced = true;
    operation_await(shuntd->home, from->id); /* no kernel's memory of paths is gone by till then */
    return rename_fence_tell_all(shuntd, from->id, false, rename_fence_all_know, step);
}

/* All have heard of its end, and before that of the new place. */
static int rename_fence_is_over(struct shuntd *shuntd, void *context, const struct collective_end *unused)
{
    struct rename_fence_own *own = context;
    list_remove(&own->link);
    free(own);
    home_collectives_ready(shuntd->home, &shuntd->awaiting_fences);
    return 0;
}

int rename_fence_end(struct shuntd *shuntd, const struct operation *from)
{
    for (struct link *link = shuntd->own_fences.next; from->rename.fenced && link != &shuntd->own_fences; link = link->next) {
        struct rename_fence_own *own = LINK_OF(link, struct rename_fence_own, link);
        if (own->operation != from->id || own->has_ended)
            continue;
        own->has_ended = true;
        return rename_fence_tell_all(shuntd, from->id, true, rename_fence_is_over, own);
    }
    return 0;
}

static int rename_fence_joined(struct shuntd *shuntd, void *context, const struct collective_end *unused)
{
    struct rename_fence_job *own = rename_fence_find(shuntd, shuntd->me.number, 0);
    if (own != NULL)
        rename_fence_lift(own);
    rename_fence_tell_processes(shuntd);
    return 0;
}

int rename_fence_join(struct shuntd *shuntd)
{
    if (!rename_fence_is_needed(shuntd) || BROKEN("fence-unknown"))
        return 0;
    const int code = rename_fence_raise(shuntd, shuntd->me.number, 0);
    rename_fence_tell_processes(shuntd);
    return code == 0 ? rename_fence_tell_all(shuntd, 0, true, rename_fence_joined, NULL) : code;
}

void rename_fence_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->rename_fences)) != NULL;)
        free(LINK_OF(link, struct rename_fence_job, link));
    for (struct link *link; (link = list_take(&shuntd->own_fences)) != NULL;)
        free(LINK_OF(link, struct rename_fence_own, link));
}
