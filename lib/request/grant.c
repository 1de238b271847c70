/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "request/grant.h"

#include <dirent.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

/* What offers are made of: a regular file that goes where the placement says, or the end of one. */
static bool may_be_offered(const struct message *message)
{
    return message->flags == 0 &&
           (message->type == MESSAGE_REMOVE || (message->type == MESSAGE_RESERVE && message->entry[0].type == DT_REG));
}

/* May be torn: who takes it compares the word again. */
static bool is_about(const struct road_offer *offer, const struct message *message)
{
    const size_t length = message->name_length[0];
    return length <= sizeof offer->name && offer->name_length == length && memcmp(offer->name, message->name[0], length) == 0 &&
           offer->type == message->type && dirid_equal(offer->dir, message->dir[0]);
}

static uint64_t word_of(const struct road_offer *offer)
{
    return __atomic_load_n(&offer->word, __ATOMIC_ACQUIRE);
}

static bool is_offered(const struct road_offer *offer, const struct message *message)
{
    return ROAD_OFFER_STATE(word_of(offer)) == ROAD_OFFERED && is_about(offer, message);
}

int offer_find(const struct road_lane *lane, const struct message *message, unsigned first)
{
    if (__atomic_load_n(&lane->offers, __ATOMIC_RELAXED) == 0 || !may_be_offered(message))
        return -1;
    for (unsigned i = 0; i < ROAD_OFFERS; i++)
        if (is_offered(&lane->offer[(first + i) % ROAD_OFFERS], message))
            return (int)((first + i) % ROAD_OFFERS);
    return -1;
}

/* BRANCH/MIRROR/LEAF, as answers tell a place. */
static uint16_t copy_place(const struct road_lane *lane, uint32_t leaf, char *to)
{
    const uint16_t length = __atomic_load_n(&lane->place_length, __ATOMIC_RELAXED);
    struct text t;
    text_init(&t, to, OFFER_PLACE_MAX);
    text_bytes(&t, lane->place, length < sizeof lane->place ? length : sizeof lane->place);
    text_number(&t, leaf, 10);
    return (uint16_t)t.length;
}

/* The order matters: the word, what it stands for, then the swap, which fails if that is another offer's by now. The time is
 * there before the daemon can see that it was taken. */
uint64_t offer_take(struct road_lane *lane, unsigned slot, const struct message *message, struct message *answer,
                    uint8_t *bytes)
{
    struct road_offer *offer = &lane->offer[slot];
    uint64_t word = word_of(offer);
    const uint64_t taken = word - ROAD_OFFERED + ROAD_TAKEN;
    if (ROAD_OFFER_STATE(word) != ROAD_OFFERED || !is_about(offer, message))
        return 0;
    *answer = (struct message){.type = MESSAGE_ANSWER, .entry[0] = offer->entry, .name[0] = (const char *)bytes};
    answer->name_length[0] = copy_place(lane, offer->entry.leaf, (char *)bytes);
    __atomic_store_n(&offer->taken_at, clock_files(), __ATOMIC_RELAXED);
    return __atomic_compare_exchange_n(&offer->word, &word, taken, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED) ? taken : 0;
}

static bool is_its_end(const struct road_offer *offer, const struct message *message)
{
    return offer->type == MESSAGE_RESERVE ? message->type == MESSAGE_CONFIRM && message->entry[0].type == DT_REG
                                          : message->type == MESSAGE_GONE;
}

bool offer_end(struct road_lane *lane, unsigned slot, uint64_t word, const struct message *message, bool *calls)
{
    struct road_offer *offer = &lane->offer[slot];
    if (word_of(offer) != word || !is_its_end(offer, message))
        return false;
    *calls = offer->calls != 0;
    offer->made = message->entry[0].ino;
    return __atomic_compare_exchange_n(&offer->word, &word, word - ROAD_TAKEN + ROAD_DONE, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
}
