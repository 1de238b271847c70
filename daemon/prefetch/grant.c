/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "prefetch/grant.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hook.h"
#include "request/channel.h"
#include "ops/ops.h"

/* So many offers after the one that woke the daemon there are still some left. */
#define CALLS_EACH (ROAD_OFFERS / 2)

/* The offers of a lane, in a ring: they are taken about in the order in which they were made. */
struct lane {
    struct link link; /* while it has some */
    uint64_t client;
    uint64_t flight[ROAD_OFFERS]; /* by its number, 0: the slot is free */
    unsigned used, next;
};

struct offers {
    struct link lanes; /* that have some */
    unsigned lane_count;
    struct lane lane[ROAD_LANES];
};

int offer_create(struct offers **to)
{
    struct offers *offers = calloc(1, sizeof *offers);
    if (offers == NULL)
        return -ENOMEM;
    list_init(&offers->lanes);
    for (unsigned i = 0; i < ROAD_LANES; i++)
        list_init(&offers->lane[i].link);
    *to = offers;
    return 0;
}

void offer_destroy(struct offers *offers)
{
    free(offers);
}

static struct lane *lane_of(const struct shuntd *shuntd, const struct flight *flight)
{
    return &shuntd->offers->lane[flight->lane];
}

static unsigned slot_of(const struct flight *flight)
{
    return flight->offer - 1u;
}

bool offer_is_any(const struct shuntd *shuntd)
{
    return shuntd->offers->lane_count > 0;
}

struct flight *offer_in_the_way(const struct shuntd *shuntd, uint32_t number)
{
    const struct lane *lane = &shuntd->offers->lane[number];
    return lane->flight[lane->next] != 0 ? flight_by_id(shuntd->home, lane->flight[lane->next]) : NULL;
}

static void enter(struct shuntd *shuntd, struct flight *flight, uint64_t client)
{
    struct lane *lane = lane_of(shuntd, flight);
    flight->offer = (uint16_t)(lane->next + 1);
    lane->client = client;
    lane->flight[lane->next] = flight->id;
    lane->next = (lane->next + 1) % ROAD_OFFERS;
    if (lane->used++ > 0)
        return;
    list_append(&shuntd->offers->lanes, &lane->link);
    shuntd->offers->lane_count++;
}

static void leave(struct shuntd *shuntd, struct flight *flight)
{
    struct lane *lane = lane_of(shuntd, flight);
    lane->flight[slot_of(flight)] = 0;
    flight->offer = 0;
    if (--lane->used > 0)
        return;
    list_remove(&lane->link);
    shuntd->offers->lane_count--;
}

bool offer_make(struct shuntd *shuntd, struct flight *flight, uint64_t client)
{
    const struct lane *lane = lane_of(shuntd, flight);
    const bool makes = flight->kind == FLIGHT_BIRTH;
    const struct record_entry *entry = makes ? &flight->place : &flight->before;
    struct message at = {0};
    char place[SERVE_PLACE_MAX];
    if (offer_in_the_way(shuntd, flight->lane) != NULL || (lane->used > 0 && lane->client != client))
        return false;
    serve_place(shuntd, flight->dir, entry, place, &at, 0);
    const struct listen_offer offer = {.type = makes ? MESSAGE_RESERVE : MESSAGE_REMOVE,
                                       .calls = lane->next % CALLS_EACH == CALLS_EACH - 1,
                                       .dir = flight->dir->id,
                                       .entry = *entry,
                                       .name = flight->name,
                                       .name_length = flight->length,
                                       .place = place,
                                       .place_length = at.name_length[0]};
    if (!listen_offer(shuntd->listen, flight->lane, lane->next, &offer))
        return false;
    enter(shuntd, flight, client);
    return true;
}

bool offer_take_back(struct shuntd *shuntd, struct flight *flight)
{
    if (flight->offer == 0)
        return true;
    if (BROKEN("offer-kept"))
        listen_end_offer(shuntd->listen, flight->lane, slot_of(flight)); /* whoever has taken it */
    else if (!listen_take_back_offer(shuntd->listen, flight->lane, slot_of(flight)))
        return false;
    leave(shuntd, flight);
    return true;
}

void offer_over(struct shuntd *shuntd, struct flight *flight)
{
    if (flight->offer == 0)
        return;
    listen_end_offer(shuntd->listen, flight->lane, slot_of(flight));
    leave(shuntd, flight);
}

/* It was taken: as if its process had asked for it then, and been answered. */
static int claim(struct shuntd *shuntd, struct flight *flight, uint64_t taken_at)
{
    const uint64_t now = clock_files();
    flight->began = taken_at < now ? taken_at : now;
    flight->client = lane_of(shuntd, flight)->client;
    shuntd->counts.foreseen++;
    int code = flight_claim(shuntd->home, flight, NULL);
    if (code != 0)
        return code;
    return flight->kind == FLIGHT_BIRTH ? serve_birth_begins(shuntd, flight) : serve_removal_begins(shuntd, flight);
}

/* A number that is none is a process's mistake. */
static int finish(struct shuntd *shuntd, struct flight *flight, uint64_t made)
{
    const struct record_entry entry = {.type = DT_REG, .ino = made};
    return flight->kind == FLIGHT_BIRTH && made == 0 ? serve_settle_by_disk(shuntd, flight)
                                                     : serve_ended_well(shuntd, flight, &entry, (struct dirid){0, 0});
}

static int see(struct shuntd *shuntd, struct flight *flight)
{
    uint64_t taken_at, made;
    const enum listen_offered what = listen_offered(shuntd->listen, flight->lane, slot_of(flight), &taken_at, &made);
    if (what == LISTEN_OFFERED || BROKEN("offer-unseen"))
        return 0;
    int code = flight->ahead ? claim(shuntd, flight, taken_at) : 0;
    return code == 0 && what == LISTEN_DONE ? finish(shuntd, flight, made) : code;
}

int offer_settle(struct shuntd *shuntd, struct flight *flight)
{
    if (flight->offer == 0 || (flight->ahead && offer_take_back(shuntd, flight)))
        return 0;
    return see(shuntd, flight);
}

typedef int each_offer(struct shuntd *, struct flight *);

/* Those of a directory (NULL: all), the oldest first. What follows from one may add others. */
static int in_lane(struct shuntd *shuntd, struct lane *lane, const struct home_dir *dir, each_offer *each)
{
    const unsigned first = lane->next;
    int code = 0;
    for (unsigned i = 0; i < ROAD_OFFERS && lane->used > 0 && code == 0; i++) {
        const uint64_t id = lane->flight[(first + i) % ROAD_OFFERS];
        struct flight *flight = id != 0 ? flight_by_id(shuntd->home, id) : NULL;
        code = flight != NULL && (dir == NULL || flight->dir == dir) ? each(shuntd, flight) : 0;
    }
    return code;
}

/* ... of a client (0: all). Lanes that come meanwhile are left out. */
static int in_lanes(struct shuntd *shuntd, const struct home_dir *dir, uint64_t client, each_offer *each)
{
    struct link *lanes = &shuntd->offers->lanes;
    int code = 0;
    for (unsigned left = shuntd->offers->lane_count; left > 0 && !list_empty(lanes) && code == 0; left--) {
        struct link *link = list_take(lanes);
        struct lane *lane = LINK_OF(link, struct lane, link);
        list_append(lanes, link);
        code = client == 0 || lane->client == client ? in_lane(shuntd, lane, dir, each) : 0;
    }
    return code;
}

int offer_settle_dir(struct shuntd *shuntd, const struct home_dir *dir)
{
    return in_lanes(shuntd, dir, 0, offer_settle);
}

int offer_settle_client(struct shuntd *shuntd, uint64_t client)
{
    return in_lanes(shuntd, NULL, client, offer_settle);
}

int offer_see_all(struct shuntd *shuntd)
{
    return in_lanes(shuntd, NULL, 0, see);
}

/* With each request of a process that is offered something: as a rule nothing was taken. */
static bool has_taken(struct shuntd *shuntd, uint32_t number)
{
    const struct lane *lane = &shuntd->offers->lane[number];
    for (unsigned i = 0; i < ROAD_OFFERS; i++)
        if (lane->flight[i] != 0 && listen_is_taken(shuntd->listen, number, i))
            return true;
    return false;
}

int offer_see_lane(struct shuntd *shuntd, uint32_t lane)
{
    return shuntd->offers->lane[lane].used > 0 && has_taken(shuntd, lane)
               ? in_lane(shuntd, &shuntd->offers->lane[lane], NULL, see)
               : 0;
}

int offer_step(struct shuntd *shuntd)
{
    int code = 0;
    for (int lane; code == 0 && (lane = listen_next_visited(shuntd->listen)) >= 0;)
        code = offer_see_lane(shuntd, (uint32_t)lane);
    return code;
}

void offer_take_back_like(struct shuntd *shuntd, const struct flight *last)
{
    const struct lane *lane = lane_of(shuntd, last);
    for (unsigned i = 0; i < ROAD_OFFERS && lane->used > 0; i++) {
        struct flight *flight = lane->flight[i] != 0 ? flight_by_id(shuntd->home, lane->flight[i]) : NULL;
        if (flight != NULL && flight->ahead && flight->kind == last->kind)
            offer_take_back(shuntd, flight);
    }
}
