/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "coordinator/rename_fence.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>

#include "coordinator/dir_times.h"
#include "home/home.h"
#include "rpc/collective.h"

/* A rename, on each node. */
struct rename_fence_job {
    struct link link;
    uint16_t member;
    uint64_t operation; /* of its */
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

int rename_fence_part(struct shuntd *shuntd, struct collective *collective, const struct message *message)
{
    const uint16_t member = message->fence.member;
    struct rename_fence_job *moving = rename_fence_find(shuntd, member, message->fence.operation);
    if (message->fence.ends && moving != NULL)
        rename_fence_lift(moving);
    if (!message->fence.ends && moving == NULL) {
        if ((moving = malloc(sizeof *moving)) == NULL)
            return -ENOMEM;
        *moving = (struct rename_fence_job){.member = member, .operation = message->fence.operation};
        list_append(&shuntd->rename_fences, &moving->link);
    }
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
    if (step == NULL)
        return -ENOMEM;
    *step = (struct step){.operation = from->id, .then = then};
    from->rename.fenced = true;
    operation_await(shuntd->home, from->id); /* no kernel's memory of paths is gone by till then */
    return rename_fence_tell_all(shuntd, from->id, false, rename_fence_all_know, step);
}

int rename_fence_end(struct shuntd *shuntd, const struct operation *from)
{
    return from->rename.fenced ? rename_fence_tell_all(shuntd, from->id, true, NULL, NULL) : 0;
}

void rename_fence_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->rename_fences)) != NULL;)
        free(LINK_OF(link, struct rename_fence_job, link));
}
