/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "recorder/record_places.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct record_place {
    struct record_place *next; /* in its bucket */
    struct dirid id;
    uint64_t seen; /* in which look */
    char path[];
};

struct record_places {
    uint64_t look;
    size_t count, room; /* buckets: a power of two */
    struct record_place **buckets;
};

struct record_places *record_places_create(void)
{
    struct record_places *places = calloc(1, sizeof *places);
    if (places == NULL)
        return NULL;
    places->room = 64;
    places->buckets = calloc(places->room, sizeof(struct record_place *));
    if (places->buckets != NULL)
        return places;
    free(places);
    return NULL;
}

void record_places_destroy(struct record_places *places)
{
    if (places == NULL)
        return;
    for (size_t i = 0; i < places->room; i++)
        for (struct record_place *place = places->buckets[i], *next; place != NULL; place = next) {
            next = place->next;
            free(place);
        }
    free(places->buckets);
    free(places);
}

void record_places_begin(struct record_places *places)
{
    places->look++;
}

static struct record_place **record_places_bucket(struct record_place **buckets, size_t room, struct dirid id)
{
    return &buckets[record_sum(&id, sizeof id, 0) & (room - 1)];
}

/* If there is no memory for more buckets, they get longer. */
static void record_places_spread(struct record_places *places)
{
    const size_t room = 2 * places->room;
    struct record_place **buckets = calloc(room, sizeof(struct record_place *));
    if (buckets == NULL)
        return;
    for (size_t i = 0; i < places->room; i++)
        for (struct record_place *place = places->buckets[i], *next; place != NULL; place = next) {
            struct record_place **to = record_places_bucket(buckets, room, place->id);
            next = place->next;
            place->next = *to;
            *to = place;
        }
    free(places->buckets);
    places->buckets = buckets;
    places->room = room;
}

/* A directory that was moved is entered again with its new path. */
int record_places_see(struct record_places *places, struct dirid id, const char *path)
{
    struct record_place **at = record_places_bucket(places->buckets, places->room, id);
    while (*at != NULL && !dirid_equal((*at)->id, id))
        at = &(*at)->next;
    struct record_place *old = *at;
    if (old != NULL && strcmp(old->path, path) == 0) {
        old->seen = places->look;
        return 0;
    }
    struct record_place *place = malloc(sizeof *place + strlen(path) + 1);
    if (place == NULL)
        return -ENOMEM;
    *place = (struct record_place){.next = old != NULL ? old->next : NULL, .id = id, .seen = places->look};
    strcpy(place->path, path);
    *at = place;
    free(old);
    places->count += old == NULL;
    if (places->count > 2 * places->room)
        record_places_spread(places);
    return 0;
}

void record_places_sweep(struct record_places *places, bool (*is_gone)(void *context, struct dirid, const char *path),
                         void *context)
{
    for (size_t i = 0; i < places->room; i++)
        for (struct record_place **at = &places->buckets[i], *place; (place = *at) != NULL;) {
            if (place->seen == places->look || !is_gone(context, place->id, place->path)) {
                at = &place->next;
                continue;
            }
            *at = place->next;
            free(place);
            places->count--;
        }
}
