/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "listen/far.h"

#include <errno.h>
#include <stdlib.h>

#include "listen/listen.h"

#define BUCKETS 4096

struct given_up {
    struct given_up *next;
    uint32_t lane, tag;
};

struct far_client {
    struct far_client *next; /* in its bucket */
    uint64_t id;
    struct given_up *given_up;
};

struct far {
    struct far_client *buckets[BUCKETS];
};

int far_create(struct far **to)
{
    *to = calloc(1, sizeof **to);
    return *to != NULL ? 0 : -ENOMEM;
}

static struct far_client **place_of(const struct far *far, uint64_t client)
{
    struct far_client **at = (struct far_client **)&far->buckets[(client ^ client >> 37) % BUCKETS];
    while (*at != NULL && (*at)->id != client)
        at = &(*at)->next;
    return at;
}

static void take_out(struct far_client **at)
{
    struct far_client *client = *at;
    *at = client->next;
    for (struct given_up *one; (one = client->given_up) != NULL;) {
        client->given_up = one->next;
        free(one);
    }
    free(client);
}

void far_destroy(struct far *far)
{
    for (unsigned i = 0; far != NULL && i < BUCKETS; i++)
        while (far->buckets[i] != NULL)
            take_out(&far->buckets[i]);
    free(far);
}

int far_add(struct far *far, uint64_t client)
{
    struct far_client **at = place_of(far, client);
    if (*at != NULL)
        return 0;
    *at = calloc(1, sizeof **at);
    if (*at == NULL)
        return -ENOMEM;
    (*at)->id = client;
    return 0;
}

void far_remove(struct far *far, uint64_t client)
{
    struct far_client **at = place_of(far, client);
    if (*at != NULL)
        take_out(at);
}

bool far_is_there(const struct far *far, uint64_t client)
{
    return *place_of(far, client) != NULL;
}

uint64_t far_any(const struct far *far, uint16_t member)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (const struct far_client *client = far->buckets[i]; client != NULL; client = client->next)
            if (listen_member(client->id) == member)
                return client->id;
    return 0;
}

void far_give_up(struct far *far, uint64_t id, uint32_t lane, uint32_t tag)
{
    struct far_client *client = *place_of(far, id);
    struct given_up *one = client != NULL ? client->given_up : NULL;
    while (one != NULL && one->lane != lane)
        one = one->next;
    if (one == NULL && client != NULL && (one = calloc(1, sizeof *one)) != NULL) {
        one->next = client->given_up;
        one->lane = lane;
        client->given_up = one;
    }
    if (one != NULL)
        one->tag = tag;
}

bool far_gave_up(const struct far *far, uint64_t id, uint32_t lane, uint32_t tag)
{
    const struct far_client *client = *place_of(far, id);
    const struct given_up *one = client != NULL ? client->given_up : NULL;
    while (one != NULL && one->lane != lane)
        one = one->next;
    return one != NULL && tag != 0 && one->tag == tag;
}
