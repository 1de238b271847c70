/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "serve/ahead.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hook.h"
#include "home/sequence.h"
#include "home/state.h"
#include "request/road.h"
#include "serve/move.h"
#include "serve/route.h"
#include "serve/serve.h"

#define RUN_MIN 2     /* so often must the step have been the one before: four names; twice as often after each that was wrong */
#define RUN_MAX 1024
#define WINDOW_MIN 4  /* names that are looked ahead at first; twice as many each time, as long as that goes well */
#define WINDOW_MAX 32
#define ALL_MAX 4096  /* names that are reserved ahead, of all makers: 3 MB here, and 2 MB at their homes */

/* Who makes names one after the other: a thread, by its lane on the road. */
struct maker {
    uint64_t client;
    struct dirid dir;
    struct sequence sequence;
    unsigned run; /* how long it must be */
    unsigned window;
    unsigned ahead; /* so far behind the last name all have been reserved whose homes are elsewhere */
};

struct ahead {
    uint64_t last; /* the youngest flight when the last tick came */
    struct maker makers[ROAD_LANES];
};

int ahead_create(struct ahead **to)
{
    *to = calloc(1, sizeof **to);
    return *to != NULL ? 0 : -ENOMEM;
}

void ahead_destroy(struct ahead *ahead)
{
    free(ahead);
}

/* Giving back. */

/* What was foreseen has not come, or somebody else came first. All that was reserved together counts once. */
static void was_wrong(struct maker *maker)
{
    if (maker->ahead > 0 && maker->run < RUN_MAX)
        maker->run *= 2;
    maker->sequence.run = maker->window = maker->ahead = 0;
}

/* Its home may not have answered yet: the end follows the answer then. */
int ahead_give_back(struct shuntd *shuntd, struct flight *flight)
{
    if (BROKEN("ahead-kept"))
        return 0;
    was_wrong(&shuntd->ahead->makers[flight->lane]);
    flight->abandoned = true;
    return flight->asking != 0 ? 0 : serve_release(shuntd, flight);
}

int ahead_make_way(struct shuntd *shuntd, const struct message *message)
{
    int code = 0;
    if (shuntd->home->ahead_count == 0 || message->type == MESSAGE_RESERVE)
        return 0;
    for (unsigned i = 0; i < 2 && code == 0; i++) {
        struct flight *flight = message->name_length[i] == 0
                                    ? NULL
                                    : flight_find(shuntd->home, message->dir[i], message->name[i], message->name_length[i]);
        if (flight != NULL && flight_is_ahead(flight))
            code = ahead_give_back(shuntd, flight);
    }
    return code;
}

/* The oldest that is to be given back, up to that one. */
static struct flight *next_until(struct home *home, uint64_t last)
{
    for (struct link *link = home->flights.next; link != &home->flights; link = link->next) {
        struct flight *flight = LINK_OF(link, struct flight, all);
        if (flight->id > last)
            return NULL;
        if (flight_is_ahead(flight) && !flight->abandoned)
            return flight;
    }
    return NULL;
}

int ahead_tick(struct shuntd *shuntd)
{
    struct ahead *ahead = shuntd->ahead;
    const uint64_t until = shuntd->stop != 0 ? UINT64_MAX : ahead->last;
    int code = 0;
    ahead->last = shuntd->home->last_id;
    if (shuntd->home->ahead_count == 0 || BROKEN("ahead-kept"))
        return 0;
    for (struct flight *flight; code == 0 && (flight = next_until(shuntd->home, until)) != NULL;)
        code = ahead_give_back(shuntd, flight);
    return code;
}

/* Reserving. */

/* What is there already, or cannot be had, ends its flight (serve_answered). */
static int is_reserved(struct shuntd *shuntd, struct flight *flight, const struct name_answer *answer)
{
    return 0;
}

static bool is_elsewhere(const struct shuntd *shuntd, uint32_t shard)
{
    return shuntd->route.home[shard] != shuntd->me.number && !move_is_awaited(shuntd, shard);
}

/* The next one behind what the maker of a flight has made. 1: not that one, nor those behind it. */
static int reserve(struct shuntd *shuntd, const struct flight *made, const char *name, size_t length)
{
    struct record_entry entry = {.type = DT_REG, .state = RECORD_PENDING};
    struct home_dir *dir = made->dir;
    if (!is_elsewhere(shuntd, record_shard(dir->id, record_hash(name, length))) ||
        flight_find(shuntd->home, dir->id, name, length) != NULL)
        return 0;
    if (shuntd->home->ahead_count >= ALL_MAX)
        return 1;
    int code = serve_choose(shuntd, dir, name, length, made->client, &entry);
    if (code != 0 || entry.branch == 0)
        return code == 0 || code == -EAGAIN ? 1 : code;
    struct flight *flight = flight_begin(shuntd, FLIGHT_AHEAD, dir, name, length, NULL);
    if (flight == NULL)
        return -ENOMEM;
    flight->lane = made->lane;
    flight->place = entry;
    flight->lost = dir->share.lost;
    return serve_ask(shuntd, flight, NAME_RESERVE, 0, &entry, is_reserved);
}

/* Once half of what was foreseen is made, so that the answers are there before they are needed. */
static int look_ahead(struct shuntd *shuntd, struct maker *maker, const struct flight *made)
{
    char name[RECORD_NAME_MAX];
    int code = 0;
    if (maker->ahead > maker->window / 2)
        return 0;
    maker->window = maker->window == 0 ? WINDOW_MIN : maker->window < WINDOW_MAX ? 2 * maker->window : WINDOW_MAX;
    for (size_t length; maker->ahead < maker->window && code == 0; maker->ahead += code == 0) {
        if ((length = sequence_foresee(&maker->sequence, maker->ahead + 1, name)) == 0)
            return 0;
        code = reserve(shuntd, made, name, length);
    }
    return code < 0 ? code : 0;
}

static void begin_anew(struct maker *maker, uint64_t client, struct dirid dir)
{
    maker->client = client;
    maker->dir = dir;
    maker->sequence.length = 0;
    maker->sequence.step = 0;
    maker->run = RUN_MIN;
}

int ahead_follow(struct shuntd *shuntd, const struct flight *made)
{
    const struct home_dir *dir = made->dir;
    struct maker *maker = &shuntd->ahead->makers[made->lane];
    if (route_is_sole(shuntd) || dir->whole != 0 || made->place.branch == 0 || shuntd->stop != 0)
        return 0;
    if (maker->client != made->client || !dirid_equal(maker->dir, dir->id))
        begin_anew(maker, made->client, dir->id);
    if (sequence_add(&maker->sequence, made->name, made->length) == 0)
        maker->window = maker->ahead = 0;
    maker->ahead -= maker->ahead > 0;
    return maker->sequence.run >= maker->run || BROKEN("ahead-late") ? look_ahead(shuntd, maker, made) : 0;
}
