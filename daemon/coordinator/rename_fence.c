/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "coordinator/rename_fence.h"

#include <errno.h>
#include <stdlib.h>

#include "rpc/collective.h"

enum { MOVING_BEGINS, MOVING_ENDS };

/* A rename, on each node. */
struct moving {
    struct link link;
    uint16_t member;
    uint64_t flight; /* of its */
};

static struct moving *find(struct shuntd *shuntd, uint16_t member, uint64_t flight)
{
    for (struct link *link = shuntd->moving.next; link != &shuntd->moving; link = link->next) {
        struct moving *moving = LINK_OF(link, struct moving, link);
        if (moving->member == member && moving->flight == flight)
            return moving;
    }
    return NULL;
}

static void tell_processes(struct shuntd *shuntd)
{
    uint32_t count = 0;
    for (struct link *link = shuntd->moving.next; link != &shuntd->moving; link = link->next)
        count++;
    listen_set_moving(shuntd->listen, count);
}

static void end(struct moving *moving)
{
    list_remove(&moving->link);
    free(moving);
}

int cast_moving(struct shuntd *shuntd, struct cast *cast, const struct message *message)
{
    const uint16_t member = (uint16_t)message->child.birth;
    struct moving *moving = find(shuntd, member, message->child.ino);
    if (message->result == MOVING_ENDS && moving != NULL)
        end(moving);
    if (message->result == MOVING_BEGINS && moving == NULL) {
        if ((moving = malloc(sizeof *moving)) == NULL)
            return -ENOMEM;
        *moving = (struct moving){.member = member, .flight = message->child.ino};
        list_append(&shuntd->moving, &moving->link);
    }
    tell_processes(shuntd);
    return 0;
}

void moving_gone(struct shuntd *shuntd, uint16_t member)
{
    for (struct link *link = shuntd->moving.next, *next; link != &shuntd->moving; link = next) {
        next = link->next;
        if (LINK_OF(link, struct moving, link)->member == member)
            end(LINK_OF(link, struct moving, link));
    }
    tell_processes(shuntd);
}

static int tell_all(struct shuntd *shuntd, uint64_t flight, int what, cast_done *done, void *context)
{
    const struct message message = {
        .type = MESSAGE_MOVING, .result = what, .child = {.ino = flight, .birth = shuntd->me.number}};
    return cast_begin(shuntd, &message, NULL, done, context);
}

struct step {
    uint64_t flight;
    int (*then)(struct shuntd *, struct flight *);
};

static int all_know(struct shuntd *shuntd, void *context, const struct cast_end *unused)
{
    struct step step = *(struct step *)context;
    free(context);
    struct flight *from = flight_by_id(shuntd->home, step.flight);
    return from != NULL ? step.then(shuntd, from) : 0;
}

int moving_begin(struct shuntd *shuntd, struct flight *from, int (*then)(struct shuntd *, struct flight *))
{
    struct step *step = malloc(sizeof *step);
    if (step == NULL)
        return -ENOMEM;
    *step = (struct step){.flight = from->id, .then = then};
    from->moving = true;
    flight_await(shuntd->home, from->id); /* no process goes by what it remembers till then */
    return tell_all(shuntd, from->id, MOVING_BEGINS, all_know, step);
}

int moving_end(struct shuntd *shuntd, const struct flight *from)
{
    return from->moving ? tell_all(shuntd, from->id, MOVING_ENDS, NULL, NULL) : 0;
}

void moving_free(struct shuntd *shuntd)
{
    for (struct link *link; (link = list_take(&shuntd->moving)) != NULL;)
        free(LINK_OF(link, struct moving, link));
}
