/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "home/state.h"
#include "shuntd.h"

static struct flight **bucket_of(struct home *home, struct dirid dir, uint64_t hash)
{
    return &home->names[(hash ^ dir.ino * 0x9e3779b97f4a7c15ull) % HOME_BUCKETS];
}

struct flight *flight_find(struct home *home, struct dirid dir, const char *name, size_t length)
{
    struct flight *flight = *bucket_of(home, dir, record_hash(name, length));
    for (; flight != NULL; flight = flight->next)
        if (dirid_equal(flight->dir->id, dir) && flight->length == length && memcmp(flight->name, name, length) == 0)
            return flight;
    return NULL;
}

struct flight *flight_of(struct home *home, struct dirid dir, const char *name, size_t length, uint64_t client)
{
    struct flight *flight = flight_find(home, dir, name, length);
    return flight != NULL && flight->client == client ? flight : NULL;
}

static struct flight **number_of(struct home *home, uint64_t id)
{
    struct flight **at = &home->numbers[id % HOME_BUCKETS];
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next_id;
    return at;
}

struct flight *flight_by_id(struct home *home, uint64_t id)
{
    return *number_of(home, id);
}

static bool has_name(const struct flight *flight)
{
    return flight->kind != FLIGHT_LOOKUP;
}

static void enter(struct home *home, struct flight *flight)
{
    struct flight **number = number_of(home, flight->id = ++home->last_id);
    *number = flight;
    list_append(&home->flights, &flight->all);
    home->flight_count++;
    home->ahead_count += flight->ahead;
    if (!has_name(flight))
        return;
    struct flight **bucket = bucket_of(home, flight->dir->id, flight->hash);
    flight->next = *bucket;
    *bucket = flight;
}

/* Whose it is, and the request as it came, to begin again. */
static int answers_to(struct flight *flight, const struct listen_request *request)
{
    flight->client = request->client;
    flight->lane = request->lane;
    flight->tag = request->message.tag;
    flight->flags = request->message.flags;
    flight->request = home_copy(request);
    return flight->request != NULL ? 0 : -ENOMEM;
}

struct flight *flight_begin(struct shuntd *shuntd, enum flight_kind kind, struct home_dir *dir, const char *name, size_t length,
                            const struct listen_request *request)
{
    struct flight *flight = malloc(sizeof *flight); /* glibc's calloc passes by what a thread has just freed */
    if (flight == NULL)
        return NULL;
    memset(flight, 0, offsetof(struct flight, name));
    flight->kind = kind;
    flight->dir = dir;
    flight->length = (uint16_t)length;
    flight->hash = record_hash(name, length);
    flight->shard = record_shard(dir->id, flight->hash);
    memcpy(flight->name, name, length);
    list_init(&flight->waiting);
    flight->ahead = flight->foreseen = request == NULL;
    if (request != NULL && answers_to(flight, request) != 0) {
        free(flight);
        return NULL;
    }
    enter(shuntd->home, flight);
    dir->flights++;
    return flight;
}

int flight_claim(struct home *home, struct flight *flight, const struct listen_request *request)
{
    home->ahead_count--;
    flight->ahead = false;
    return request != NULL ? answers_to(flight, request) : 0;
}

int flight_touch(struct shuntd *shuntd, struct flight *flight)
{
    const struct home_times before = flight->dir->times;
    int code = home_dir_touch(shuntd, flight->dir, flight->began != 0 ? flight->began : clock_files());
    flight->changed_before = before.changed;
    flight->written_before = before.written;
    flight->changed = flight->dir->times.changed;
    flight->touch = flight->dir->touches;
    return code;
}

/* What another node may have seen stays. */
int flight_untouch(struct shuntd *shuntd, struct flight *flight)
{
    struct home_dir *dir = flight->dir;
    if (flight->touch == 0 || flight->touch != dir->touches || flight->changed != dir->times.changed ||
        flight->changed == flight->changed_before || flight->changed <= dir->known)
        return 0;
    return home_dir_untouch(shuntd, dir, flight->changed_before, flight->written_before);
}

static void leave(struct home *home, struct flight *flight)
{
    *number_of(home, flight->id) = flight->next_id;
    list_remove(&flight->all);
    home->flight_count--;
    home->ahead_count -= flight->ahead;
    if (!has_name(flight))
        return;
    struct flight **at = bucket_of(home, flight->dir->id, flight->hash);
    while (*at != flight)
        at = &(*at)->next;
    *at = flight->next;
}

void flight_await(struct home *home, uint64_t id)
{
    struct flight *flight = flight_by_id(home, id);
    if (flight == NULL || flight->awaited)
        return;
    flight->awaited = true;
    home->awaited++;
}

int flight_count_in_leaf(struct flight *flight)
{
    flight->counted = true;
    return home_leaf_count(&flight->dir->share, flight->place.leaf, 1);
}

void flight_end(struct shuntd *shuntd, struct flight *flight)
{
    struct home *home = shuntd->home;
    struct home_dir *dir = flight->dir;
    leave(home, flight);
    if (flight->counted && flight->lost == dir->share.lost)
        home_leaf_count(&dir->share, flight->place.leaf, -1); /* there is room for it already */
    home->awaited -= flight->awaited;
    home_wake(home, &flight->waiting);
    free(flight->request);
    free(flight);
    dir->flights--;
    home_dir_release(home, dir);
}

static bool is_over(struct shuntd *shuntd, const struct flight *flight, uint64_t client)
{
    if (flight->abandoned || flight->ahead)
        return false;
    return client != 0 ? flight->client == client
                       : flight->given_up || listen_gave_up(shuntd->listen, flight->lane, flight->client, flight->tag);
}

struct flight *flight_of_client(struct shuntd *shuntd, uint64_t client)
{
    struct link *flights = &shuntd->home->flights;
    for (struct link *link = flights->next; link != flights; link = link->next)
        if (is_over(shuntd, LINK_OF(link, struct flight, all), client))
            return LINK_OF(link, struct flight, all);
    return NULL;
}

void flight_give_up(struct home *home, uint64_t client, uint32_t lane, uint32_t tag)
{
    for (struct link *link = home->flights.next; link != &home->flights; link = link->next) {
        struct flight *flight = LINK_OF(link, struct flight, all);
        flight->given_up |= flight->client == client && flight->lane == lane && flight->tag == tag;
    }
}

int flight_each_held(struct home *home, int (*each)(void *context, const struct flight *), void *context)
{
    int code = 0;
    for (struct link *link = home->flights.next; link != &home->flights && code == 0; link = link->next) {
        const struct flight *flight = LINK_OF(link, struct flight, all);
        code = flight->held ? each(context, flight) : 0;
    }
    return code;
}

unsigned flight_count(struct home *home)
{
    return home->flight_count;
}

struct home_parked *home_copy(const struct listen_request *request)
{
    size_t size = message_size(&request->message);
    struct home_parked *parked = malloc(sizeof *parked + size);
    if (parked == NULL)
        return NULL;
    list_init(&parked->link);
    parked->lane = request->lane;
    parked->client = request->client;
    parked->size = (uint32_t)message_encode(parked->bytes, size, &request->message);
    return parked;
}

void home_unpark(const struct home_parked *parked, struct listen_request *request)
{
    request->lane = parked->lane;
    request->client = parked->client;
    memcpy(request->bytes, parked->bytes, parked->size);
    message_decode(&request->message, request->bytes, parked->size); /* was decoded before */
}

int home_park(struct shuntd *shuntd, struct link *waiting, const struct listen_request *request)
{
    struct home_parked *parked = home_copy(request);
    if (parked == NULL)
        return -ENOMEM;
    list_append(waiting, &parked->link);
    shuntd->counts.parked++;
    shuntd->home->parked++;
    return 0;
}

static void set_trunk(struct home_parked *parked)
{
    struct message message;
    if (message_decode(&message, parked->bytes, parked->size) != 0 ||
        (message.type != MESSAGE_RESERVE && message.type != MESSAGE_RENAME))
        return;
    uint8_t bytes[MESSAGE_SHORT + MESSAGE_TEXT_MAX];
    message.flags |= MESSAGE_TRUNK;
    memcpy(parked->bytes, bytes, message_encode(bytes, parked->size, &message));
}

int home_stay_in_trunk(struct link *waiting)
{
    for (struct link *link = waiting->next; link != waiting; link = link->next)
        set_trunk(LINK_OF(link, struct home_parked, link));
    return 0;
}

void home_parked_free(struct link *waiting)
{
    for (struct link *link; (link = list_take(waiting)) != NULL;)
        free(LINK_OF(link, struct home_parked, link));
}

void home_wake(struct home *home, struct link *waiting)
{
    list_move(&home->woken, waiting);
}

bool home_has_waiting(const struct home *home)
{
    return home->parked > 0 || home->waiting > 0 || home->awaited > 0;
}

bool home_has_woken(const struct home *home)
{
    return !list_empty(&home->woken) || !list_empty(&home->questions) || !list_empty(&home->news) || !list_empty(&home->ready);
}

void home_again(struct home *home, struct home_parked *parked)
{
    home->parked++;
    list_append(&home->woken, &parked->link);
}

struct home_parked *home_next_woken(struct home *home)
{
    struct link *link = list_take(&home->woken);
    home->parked -= link != NULL;
    return link != NULL ? LINK_OF(link, struct home_parked, link) : NULL;
}
