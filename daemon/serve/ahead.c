/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "serve/ahead.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hook.h"
#include "home/sequence.h"
#include "home/spare.h"
#include "home/state.h"
#include "request/road.h"
#include "serve/move.h"
#include "serve/route.h"
#include "serve/serve.h"

#define RUN_MIN 2     /* so often must the step have been the one before: four names; twice as often after each that was wrong */
#define RUN_MAX 1024
#define WINDOW_MIN 4  /* names that are looked ahead at first; twice as many each time, as long as that goes well */
#define WINDOW_MAX 128
#define ALL_MAX 8192  /* names that are asked for ahead, of all: 6 MB here, and 3 MB at their homes */

/* Who makes or removes names one after the other: a thread, by its lane on the road. */
struct maker {
    uint64_t client;
    struct dirid dir;
    struct sequence sequence;
    unsigned run; /* how long it must be */
    unsigned window;
    unsigned ahead; /* so far behind the last name all have been asked for whose homes are elsewhere */
    uint64_t used;   /* monotonic, when it named the last one */
    uint64_t behind; /* the youngest flight of all when another sequence began: older ones are of no use any more */
};

struct ahead {
    uint64_t ticked; /* monotonic, when the last tick came */
    struct maker makers[ROAD_LANES], removers[ROAD_LANES];
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

static struct maker *maker_of(const struct shuntd *shuntd, const struct flight *flight)
{
    struct ahead *ahead = shuntd->ahead;
    return flight->kind == FLIGHT_REMOVAL ? &ahead->removers[flight->lane] : &ahead->makers[flight->lane];
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
static int release(struct shuntd *shuntd, struct flight *flight)
{
    if (BROKEN("ahead-kept"))
        return 0;
    flight->abandoned = true;
    return flight->asking != 0 ? 0 : serve_release(shuntd, flight);
}

int ahead_give_back(struct shuntd *shuntd, struct flight *flight)
{
    if (flight->abandoned)
        return 0;
    was_wrong(maker_of(shuntd, flight));
    return release(shuntd, flight);
}

bool ahead_knows(const struct flight *flight)
{
    return flight->ahead && flight->held;
}

struct name_answer ahead_answer(const struct flight *flight)
{
    return (struct name_answer){.result = flight->had_before ? MESSAGE_EXISTS : MESSAGE_ABSENT, .entry = flight->before};
}

int ahead_make_way(struct shuntd *shuntd, const struct message *message)
{
    static const bool is_ours[MESSAGE_TYPES] = {[MESSAGE_RESERVE] = true, [MESSAGE_REMOVE] = true, [MESSAGE_LOOKUP] = true};
    int code = 0;
    if (shuntd->home->ahead_count == 0 || is_ours[message->type])
        return 0;
    for (unsigned i = 0; i < 2 && code == 0; i++) {
        struct flight *flight = message->name_length[i] == 0
                                    ? NULL
                                    : flight_find(shuntd->home, message->dir[i], message->name[i], message->name_length[i]);
        if (flight != NULL && flight->ahead)
            code = ahead_give_back(shuntd, flight);
    }
    return code;
}

/* 0, or a fatal -errno. */
static int look_after(struct shuntd *shuntd, struct flight *flight, uint64_t since)
{
    const struct maker *maker = maker_of(shuntd, flight);
    return !flight->ahead || flight->abandoned ? 0
           : maker->used < since               ? ahead_give_back(shuntd, flight)
           : flight->id <= maker->behind       ? release(shuntd, flight)
                                               : 0;
}

void ahead_forget(struct shuntd *shuntd)
{
    struct link *flights = &shuntd->home->flights, *next;
    for (struct link *link = flights->next; link != flights; link = next) {
        struct flight *flight = LINK_OF(link, struct flight, all);
        next = link->next;
        flight->abandoned |= flight->ahead;
        if (flight->ahead && flight->asking == 0)
            flight_end(shuntd, flight);
    }
}

int ahead_tick(struct shuntd *shuntd)
{
    struct link *flights = &shuntd->home->flights, *next;
    const uint64_t since = shuntd->stop != 0 ? UINT64_MAX : shuntd->ahead->ticked;
    int code = 0;
    shuntd->ahead->ticked = shuntd->now;
    if (shuntd->home->ahead_count == 0)
        return 0;
    for (struct link *link = flights->next; link != flights && code == 0; link = next) {
        next = link->next;
        code = look_after(shuntd, LINK_OF(link, struct flight, all), since);
    }
    return code;
}

/* Claiming. */

/* Its home's answer is there already, or on its way, and then goes to who asks. If the file is to go elsewhere by now, the
 * home has to hear of that before it is made: then it is asked as for any other name. */
int ahead_claim(struct shuntd *shuntd, const struct listen_request *request, enum flight_kind kind,
                const struct record_entry *place, bool *claimed)
{
    const struct message *message = &request->message;
    struct flight *flight = flight_find(shuntd->home, message->dir[0], message->name[0], message->name_length[0]);
    if (flight == NULL || !flight->ahead || flight->abandoned)
        return 0;
    if (flight->kind != kind)
        return ahead_give_back(shuntd, flight);
    if (place != NULL && !record_same(&flight->place, place)) {
        maker_of(shuntd, flight)->ahead = 0; /* all that it foresaw is to go elsewhere */
        return release(shuntd, flight);
    }
    const struct name_answer answer = {.result = flight->had_before ? MESSAGE_EXISTS : 0, .entry = flight->before};
    *claimed = true;
    shuntd->counts.foreseen++;
    int code = flight_claim(shuntd->home, flight, request);
    return code == 0 && flight->asking == 0 ? flight->then(shuntd, flight, &answer) : code;
}

/* Reserving. */

static bool is_elsewhere(const struct shuntd *shuntd, uint32_t shard)
{
    return shuntd->route.home[shard] != shuntd->me.number && !move_is_awaited(shuntd, shard);
}

/* Where a name is to be made. 1: not in a branch, or not yet. */
static int choose(struct shuntd *shuntd, const struct flight *made, const char *name, size_t length, struct record_entry *entry)
{
    *entry = (struct record_entry){.type = DT_REG, .state = RECORD_PENDING};
    int code = serve_choose(shuntd, made->dir, name, length, made->client, entry);
    return code == -EAGAIN || (code == 0 && entry->branch == 0) ? 1 : code;
}

/* What was foreseen before, and is to be made elsewhere by now. */
static int release_stale(struct shuntd *shuntd, const struct flight *made, const char *name, size_t length,
                         const struct record_entry *entry)
{
    struct flight *flight = flight_find(shuntd->home, made->dir->id, name, length);
    return flight != NULL && flight->ahead && flight->kind == made->kind && !flight->abandoned &&
                   made->kind == FLIGHT_BIRTH && !record_same(&flight->place, entry)
               ? release(shuntd, flight)
               : 0;
}

/* What its home was asked of the last name it is asked of the next, too. 1: not of that one, nor of those behind it. */
static int ask(struct shuntd *shuntd, const struct flight *last, const char *name, size_t length)
{
    const bool makes = last->kind == FLIGHT_BIRTH;
    struct record_entry entry = last->ask_entry;
    struct home_dir *dir = last->dir;
    if (!is_elsewhere(shuntd, record_shard(dir->id, record_hash(name, length))))
        return 0;
    if (shuntd->home->ahead_count >= ALL_MAX)
        return 1;
    int code = makes ? choose(shuntd, last, name, length, &entry) : 0;
    if (code == 0)
        code = release_stale(shuntd, last, name, length, &entry);
    if (code != 0 || flight_find(shuntd->home, dir->id, name, length) != NULL)
        return code;
    struct flight *flight = flight_begin(shuntd, last->kind, dir, name, length, NULL);
    if (flight == NULL)
        return -ENOMEM;
    flight->lane = last->lane;
    flight->place = entry;
    flight->lost = dir->share.lost;
    return serve_ask(shuntd, flight, makes ? NAME_RESERVE : NAME_HOLD, NAME_AHEAD, &entry, last->then);
}

/* Once half of what was foreseen is made, so that the answers are there before they are needed. */
static int look_ahead(struct shuntd *shuntd, struct maker *maker, const struct flight *last)
{
    char name[RECORD_NAME_MAX];
    int code = 0;
    if (maker->ahead > maker->window / 2 || !spare_is_there())
        return 0;
    maker->window = maker->window == 0 ? WINDOW_MIN : maker->window < WINDOW_MAX ? 2 * maker->window : WINDOW_MAX;
    if (maker->window == WINDOW_MAX)
        maker->run = RUN_MIN; /* it goes well */
    for (size_t length; maker->ahead < maker->window && code == 0; maker->ahead += code == 0) {
        if ((length = sequence_foresee(&maker->sequence, maker->ahead + 1, name)) == 0)
            return 0;
        code = ask(shuntd, last, name, length);
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

int ahead_follow(struct shuntd *shuntd, const struct flight *last)
{
    const struct home_dir *dir = last->dir;
    struct maker *maker = maker_of(shuntd, last);
    if (route_is_sole(shuntd) || dir->whole != 0 || last->place.branch == 0 || shuntd->stop != 0)
        return 0;
    if (maker->client != last->client || !dirid_equal(maker->dir, dir->id))
        begin_anew(maker, last->client, dir->id);
    maker->used = shuntd->now;
    if (sequence_add(&maker->sequence, last->name, last->length) == 0) {
        maker->window = maker->ahead = 0;
        maker->behind = shuntd->home->last_id;
    }
    maker->ahead -= maker->ahead > 0;
    return maker->sequence.run >= maker->run || BROKEN("ahead-late") ? look_ahead(shuntd, maker, last) : 0;
}
