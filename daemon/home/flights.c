/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "home/state.h"
#include "shuntd.h"

static struct flight **bucket_of(struct home *home, struct dirid dir, const char *name, size_t length)
{
    uint64_t hash = record_hash(name, length) ^ dir.ino * 0x9e3779b97f4a7c15ull;
    return &home->names[hash % HOME_BUCKETS];
}

struct flight *flight_find(struct home *home, struct dirid dir, const char *name, size_t length)
{
    struct flight *flight = *bucket_of(home, dir, name, length);
    for (; flight != NULL; flight = flight->next)
        if (dirid_equal(flight->dir->id, dir) && flight->length == length &&
            memcmp(flight->name, name, length) == 0)
            return flight;
    return NULL;
}

struct flight *flight_of(struct home *home, struct dirid dir, const char *name, size_t length,
                         uint64_t client)
{
    struct flight *flight = flight_find(home, dir, name, length);
    return flight != NULL && flight->client == client ? flight : NULL;
}

struct flight *flight_begin(struct shuntd *shuntd, enum flight_kind kind, struct home_dir *dir,
                            const char *name, size_t length, const struct listen_request *request)
{
    struct home *home = shuntd->home;
    struct flight *flight = calloc(1, sizeof *flight);
    if (flight == NULL)
        return NULL;
    flight->kind = kind;
    flight->dir = dir;
    flight->client = request->client;
    flight->lane = request->lane;
    flight->tag = request->message.tag;
    flight->length = (uint16_t)length;
    memcpy(flight->name, name, length);
    list_init(&flight->waiting);
    list_append(&home->flights, &flight->all);
    struct flight **bucket = bucket_of(home, dir->id, name, length);
    flight->next = *bucket;
    *bucket = flight;
    home->flight_count++;
    dir->flights++;
    return flight;
}

int flight_touch(struct shuntd *shuntd, struct flight *flight)
{
    flight->changed_before = flight->dir->record.changed;
    int code = home_dir_touch(shuntd, flight->dir);
    flight->changed = flight->dir->record.changed;
    flight->touch = flight->dir->touches;
    return code;
}

int flight_untouch(struct shuntd *shuntd, struct flight *flight)
{
    struct home_dir *dir = flight->dir;
    if (flight->touch == 0 || flight->touch != dir->touches || flight->changed != dir->record.changed ||
        flight->changed == flight->changed_before)
        return 0;
    return home_dir_set_changed(shuntd, dir, flight->changed_before);
}

void flight_end(struct shuntd *shuntd, struct flight *flight)
{
    struct home *home = shuntd->home;
    struct flight **at = bucket_of(home, flight->dir->id, flight->name, flight->length);
    while (*at != flight)
        at = &(*at)->next;
    *at = flight->next;
    list_remove(&flight->all);
    home->flight_count--;
    home_wake(home, &flight->waiting);
    if (--flight->dir->flights == 0 && !flight->dir->working && !flight->dir->closing)
        home_wake(home, &flight->dir->waiting);
    free(flight);
}

struct flight *flight_of_client(struct shuntd *shuntd, uint64_t client)
{
    struct link *flights = &shuntd->home->flights;
    for (struct link *link = flights->next; link != flights; link = link->next) {
        struct flight *flight = LINK_OF(link, struct flight, all);
        if (client != 0 ? flight->client == client
                        : listen_gave_up(shuntd->listen, flight->lane, flight->client, flight->tag))
            return flight;
    }
    return NULL;
}

unsigned flight_count(struct home *home)
{
    return home->flight_count;
}

int home_park(struct shuntd *shuntd, struct link *waiting, const struct listen_request *request)
{
    struct home_parked *parked = malloc(sizeof *parked);
    if (parked == NULL)
        return -ENOMEM;
    parked->request = *request;
    /* names and text point into the bytes that were copied along */
    for (int i = 0; i < 2; i++)
        parked->request.message.name[i] =
            (const char *)parked->request.bytes + (request->message.name[i] - (const char *)request->bytes);
    parked->request.message.text =
        (const char *)parked->request.bytes + (request->message.text - (const char *)request->bytes);
    list_append(waiting, &parked->link);
    shuntd->counts.parked++;
    shuntd->home->parked++;
    return 0;
}

void home_wake(struct home *home, struct link *waiting)
{
    list_move(&home->woken, waiting);
}

bool home_has_parked(const struct home *home)
{
    return home->parked > 0;
}

struct home_parked *home_next_woken(struct home *home)
{
    struct link *link = list_take(&home->woken);
    home->parked -= link != NULL;
    return link != NULL ? LINK_OF(link, struct home_parked, link) : NULL;
}
