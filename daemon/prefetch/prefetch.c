/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "prefetch/prefetch.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hook.h"
#include "home/sequence.h"
#include "home/oom_reserve.h"
#include "home/state.h"
#include "request/channel.h"
#include "membership/migration.h"
#include "prefetch/grant.h"
#include "membership/route.h"
#include "ops/ops.h"

#define RUN_MIN 2 /* so often must the step have been the one before: four names; twice as often after each that was wrong */
#define RUN_MAX 1024
#define WINDOW_MIN 4 /* names that are looked ahead at first; twice as many each time, as long as that goes well */
#define WINDOW_MAX 128
#define IDLE CLOCK_MILLISECOND /* who has named nothing for so long while another on his lane does has gone over to that */
#define ALL_MAX 8192           /* names that are asked for ahead, of all: 6 MB here, and 3 MB at their homes */

/* Who makes or removes names one after the other: a thread, by its lane on the road. */
struct maker {
    uint64_t client;
    struct dirid dir;
    struct sequence sequence;
    unsigned run; /* how long it must be */
    unsigned window;
    unsigned ahead;   /* so far behind the last name all have been asked for whose homes are elsewhere */
    unsigned offered; /* ... and so far all have been offered */
    uint64_t used;    /* monotonic, when it named the last one */
    uint64_t behind;  /* the youngest flight of all when another sequence began: older ones are of no use any more */
};

struct ahead {
    uint64_t ticked; /* monotonic, when the last tick came */
    bool forgets;    /* offers are settled, and none are to follow */
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
    if ((maker->ahead > 0 || maker->offered > 0) && maker->run < RUN_MAX)
        maker->run *= 2;
    maker->sequence.run = maker->window = maker->ahead = maker->offered = 0;
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

/* NULL: nobody is at work on that name of the message's. */
static struct flight *flight_on(const struct shuntd *shuntd, const struct message *message, unsigned i)
{
    return message->name_length[i] == 0 ? NULL
                                        : flight_find(shuntd->home, message->dir[i], message->name[i], message->name_length[i]);
}

int ahead_make_way(struct shuntd *shuntd, const struct message *message)
{
    static const bool is_ours[MESSAGE_TYPES] = {[MESSAGE_RESERVE] = true, [MESSAGE_REMOVE] = true, [MESSAGE_LOOKUP] = true};
    int code = 0;
    if (shuntd->home->ahead_count == 0 && !offer_is_any(shuntd))
        return 0;
    for (unsigned i = 0; i < 2 && code == 0; i++) {
        struct flight *flight = flight_on(shuntd, message, i);
        if (flight == NULL || (!flight->ahead && flight->offer == 0))
            continue;
        code = offer_settle(shuntd, flight);
        if (code == 0 && !is_ours[message->type] && (flight = flight_on(shuntd, message, i)) != NULL && flight->ahead)
            code = ahead_give_back(shuntd, flight);
    }
    return code;
}

/* 0, or a fatal -errno. */
static int look_after(struct shuntd *shuntd, struct flight *flight, uint64_t since)
{
    const struct maker *maker = maker_of(shuntd, flight);
    const bool unused = maker->used < since;
    if (!flight->ahead || flight->abandoned || (!unused && flight->id > maker->behind) || !offer_take_back(shuntd, flight))
        return 0;
    return unused ? ahead_give_back(shuntd, flight) : release(shuntd, flight);
}

/* What is offered to a client, or to all (0); what was taken lets nothing follow. */
static int settle(struct shuntd *shuntd, uint64_t client)
{
    shuntd->ahead->forgets = true;
    int code = offer_settle_client(shuntd, client);
    shuntd->ahead->forgets = false;
    return code;
}

int ahead_forget(struct shuntd *shuntd)
{
    struct link *flights = &shuntd->home->flights, *next;
    int code = settle(shuntd, 0);
    for (struct link *link = flights->next; link != flights; link = next) {
        struct flight *flight = LINK_OF(link, struct flight, all);
        next = link->next;
        flight->abandoned |= flight->ahead;
        if (flight->ahead && flight->asking == 0)
            flight_end(shuntd, flight);
    }
    return code;
}

int ahead_ends(struct shuntd *shuntd, uint64_t client)
{
    struct link *flights = &shuntd->home->flights, *next;
    int code = settle(shuntd, client);
    for (struct link *link = flights->next; link != flights && shuntd->home->ahead_count > 0 && code == 0; link = next) {
        struct flight *flight = LINK_OF(link, struct flight, all);
        next = link->next;
        if (flight->ahead && !flight->abandoned && maker_of(shuntd, flight)->client == client)
            code = release(shuntd, flight);
    }
    return code;
}

int ahead_leave(struct shuntd *shuntd, const struct home_dir *dir, uint32_t leaf)
{
    struct link *flights = &shuntd->home->flights, *next;
    int code = 0;
    if (shuntd->home->ahead_count == 0 || !home_leaf_is_left(&dir->share, leaf))
        return 0;
    for (struct link *link = flights->next; link != flights && code == 0; link = next) {
        struct flight *flight = LINK_OF(link, struct flight, all);
        next = link->next;
        if (!flight->ahead || flight->abandoned || flight->kind != FLIGHT_BIRTH || flight->dir != dir ||
            flight->place.leaf != leaf || !offer_take_back(shuntd, flight))
            continue;
        maker_of(shuntd, flight)->ahead = maker_of(shuntd, flight)->offered = 0; /* they are foreseen anew */
        code = release(shuntd, flight);
    }
    return code;
}

int ahead_tick(struct shuntd *shuntd)
{
    struct link *flights = &shuntd->home->flights, *next;
    const uint64_t since = shuntd->stop != 0 ? UINT64_MAX : shuntd->ahead->ticked;
    shuntd->ahead->ticked = shuntd->now;
    int code = offer_see_all(shuntd);
    if (shuntd->home->ahead_count == 0)
        return code;
    for (struct link *link = flights->next; link != flights && code == 0; link = next) {
        next = link->next;
        code = look_after(shuntd, LINK_OF(link, struct flight, all), since);
    }
    return code;
}

/* Claiming. */

/* Its home's answer is there already, or on its way, and then goes to who asks. */
int ahead_claim(struct shuntd *shuntd, const struct listen_request *request, enum flight_kind kind, bool fits, bool *claimed)
{
    struct flight *flight = flight_on(shuntd, &request->message, 0);
    if (flight == NULL || !flight->ahead || flight->abandoned)
        return 0;
    if (flight->kind != kind || !fits || (kind == FLIGHT_BIRTH && flight->lost != flight->dir->share.lost))
        return ahead_give_back(shuntd, flight);
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

static bool is_all_here(const struct shuntd *shuntd, const struct home_dir *dir)
{
    return dir->whole != 0 || route_is_sole(shuntd);
}

static bool is_here(const struct shuntd *shuntd, const struct home_dir *dir, uint32_t shard)
{
    return is_all_here(shuntd, dir) || move_is_here(shuntd, shard);
}

/* Where a name is to be made. 1: not in a branch, or not yet. */
static int choose(struct shuntd *shuntd, const struct flight *made, const char *name, size_t length, struct record_entry *entry)
{
    *entry = (struct record_entry){.type = DT_REG, .state = RECORD_PENDING};
    uint32_t fresh;
    int code = serve_choose_ahead(shuntd, made->dir, name, length, maker_of(shuntd, made)->client, entry, &fresh);
    return code == -EAGAIN || (code == 0 && entry->branch == 0) ? 1 : code;
}

/* What its home was asked of the last name it is asked of the next, too. 1: not of that one, nor of those behind it. */
static int ask(struct shuntd *shuntd, const struct flight *last, const char *name, size_t length)
{
    const bool makes = last->kind == FLIGHT_BIRTH;
    struct record_entry entry = last->ask_entry;
    struct home_dir *dir = last->dir;
    if (shuntd->home->ahead_count >= ALL_MAX)
        return 1;
    int code = makes ? choose(shuntd, last, name, length, &entry) : 0;
    if (code != 0 || flight_find(shuntd->home, dir->id, name, length) != NULL)
        return code;
    struct flight *flight = flight_begin(shuntd, last->kind, dir, name, length, NULL);
    if (flight == NULL)
        return -ENOMEM;
    flight->lane = last->lane;
    flight->place = entry;
    flight->lost = dir->share.lost;
    code = makes ? flight_count_in_leaf(flight) : 0;
    return code == 0 ? serve_ask(shuntd, flight, makes ? NAME_RESERVE : NAME_HOLD, NAME_AHEAD, &entry, last->then) : code;
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
        if (is_elsewhere(shuntd, record_shard(last->dir->id, record_hash(name, length))))
            code = ask(shuntd, last, name, length);
    }
    return code < 0 ? code : 0;
}

/* Offering. */

/* The flight on a name that was foreseen, which is begun if its home is here. NULL: there is none. */
static int foreseen(struct shuntd *shuntd, const struct flight *like, const char *name, size_t length, struct flight **flight)
{
    const struct home_dir *dir = like->dir;
    const uint32_t shard = record_shard(dir->id, record_hash(name, length));
    int code = 0;
    *flight = flight_find(shuntd->home, dir->id, name, length);
    if (*flight != NULL || !is_here(shuntd, dir, shard) || dir->tells_idle || dir->wanted)
        return 0;
    code = ask(shuntd, like, name, length);
    *flight = code == 0 ? flight_find(shuntd->home, dir->id, name, length) : NULL;
    return code < 0 ? code : 0;
}

static bool may_be_offered(const struct shuntd *shuntd, const struct flight *flight, const struct flight *like)
{
    return flight != NULL && ahead_knows(flight) && !flight->abandoned && flight->kind == like->kind &&
           flight->lane == like->lane && flight->lost == flight->dir->share.lost &&
           (flight->kind != FLIGHT_BIRTH || serve_redirects(shuntd, flight->dir));
}

/* At first a few, as many as went before in a row. */
static unsigned to_be_offered(const struct maker *maker)
{
    const unsigned run = maker->sequence.run > WINDOW_MIN ? maker->sequence.run : WINDOW_MIN;
    return run < ROAD_OFFERS ? run : ROAD_OFFERS;
}

/* Who goes over from making to removing, or back, has no use for what he was offered before. */
static bool has_room(struct shuntd *shuntd, const struct maker *maker, uint32_t lane)
{
    struct flight *there = offer_in_the_way(shuntd, lane);
    const struct maker *other = there != NULL ? maker_of(shuntd, there) : NULL;
    return there == NULL ||
           (there->ahead && other != maker && other->used + IDLE < shuntd->now && offer_take_back(shuntd, there));
}

/* In the order in which they are to be asked for, as far as their homes have given them. */
static int offer_more(struct shuntd *shuntd, struct maker *maker, const struct flight *like)
{
    char name[RECORD_NAME_MAX];
    struct flight *flight;
    int code = 0;
    for (; maker->offered < to_be_offered(maker) && has_room(shuntd, maker, like->lane); maker->offered++) {
        const size_t length = sequence_foresee(&maker->sequence, maker->offered + 1, name);
        if (length == 0 || (code = foreseen(shuntd, like, name, length, &flight)) != 0 ||
            !may_be_offered(shuntd, flight, like) || (flight->offer == 0 && !offer_make(shuntd, flight, maker->client)))
            break;
    }
    return code;
}

int ahead_given(struct shuntd *shuntd, const struct flight *flight)
{
    struct maker *maker = maker_of(shuntd, flight);
    const bool is_late = flight->asked != shuntd->me.number; /* else it is being offered (foreseen) */
    return is_late && dirid_equal(maker->dir, flight->dir->id) && flight->id > maker->behind ? offer_more(shuntd, maker, flight)
                                                                                             : 0;
}

static void begin_anew(struct maker *maker, uint64_t client, struct dirid dir)
{
    maker->client = client;
    maker->dir = dir;
    maker->sequence.length = 0;
    maker->sequence.run = 0;
    maker->sequence.step = 0;
    maker->run = RUN_MIN;
}

int ahead_follow(struct shuntd *shuntd, const struct flight *last)
{
    const struct home_dir *dir = last->dir;
    struct maker *maker = maker_of(shuntd, last);
    if (last->place.branch == 0 || shuntd->stop != 0 || shuntd->ahead->forgets)
        return 0;
    if (maker->client != last->client || !dirid_equal(maker->dir, dir->id))
        begin_anew(maker, last->client, dir->id);
    maker->used = shuntd->now;
    if (sequence_add(&maker->sequence, last->name, last->length) == 0) {
        maker->window = maker->ahead = maker->offered = 0;
        maker->behind = shuntd->home->last_id;
        offer_take_back_like(shuntd, last);
    }
    maker->ahead -= maker->ahead > 0;
    maker->offered -= maker->offered > 0;
    if (maker->sequence.run >= WINDOW_MAX)
        maker->run = RUN_MIN; /* it goes well */
    if (maker->sequence.run < maker->run && !BROKEN("ahead-late"))
        return 0;
    int code = is_all_here(shuntd, dir) ? 0 : look_ahead(shuntd, maker, last);
    return code == 0 && spare_is_there() ? offer_more(shuntd, maker, last) : code;
}
