/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "request/grant.h"

#include <dirent.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

/* What grants are made of: a regular file that goes where the placement says, or the end of one. */
static bool grant_may_be_granted(const struct message *message)
{
    return message->flags == 0 &&
           (message->type == MESSAGE_UNLINK || (message->type == MESSAGE_CREATE && message->create.entry.type == DT_REG));
}

/* May be torn: taking it compares the word again. */
static bool grant_is_about(const struct channel_grant *grant, const struct message *message)
{
    const size_t length = message->name.length;
    return length <= sizeof grant->name && grant->name_length == length &&
           memcmp(grant->name, message->name.text, length) == 0 && grant->type == message->type &&
           dirid_equal(grant->dir, message->dir);
}

static uint64_t grant_word_of(const struct channel_grant *grant)
{
    return __atomic_load_n(&grant->word, __ATOMIC_ACQUIRE);
}

static bool grant_is_granted(const struct channel_grant *grant, const struct message *message)
{
    return CHANNEL_GRANT_STATE(grant_word_of(grant)) == CHANNEL_GRANTED && grant_is_about(grant, message);
}

int grant_find(const struct channel_qp *qp, const struct message *message, unsigned first)
{
    if (__atomic_load_n(&qp->grants, __ATOMIC_RELAXED) == 0 || !grant_may_be_granted(message))
        return -1;
    for (unsigned i = 0; i < CHANNEL_GRANTS; i++)
        if (grant_is_granted(&qp->grant[(first + i) % CHANNEL_GRANTS], message))
            return (int)((first + i) % CHANNEL_GRANTS);
    return -1;
}

/* BRANCH/MIRROR/LEAF, as answers tell a place. */
static uint16_t grant_copy_place(const struct channel_qp *qp, uint32_t leaf, char *to)
{
    const uint16_t length = __atomic_load_n(&qp->place_length, __ATOMIC_RELAXED);
    struct text t;
    text_init(&t, to, GRANT_PLACE_MAX);
    text_bytes(&t, qp->place, length < sizeof qp->place ? length : sizeof qp->place);
    text_number(&t, leaf, 10);
    return (uint16_t)t.length;
}

/* The order matters: the word, what it stands for, then the swap, which fails if that is another grant's by now. The time is
 * there before the daemon can see that it was taken. */
uint64_t grant_take(struct channel_qp *qp, unsigned slot, const struct message *message, struct message *answer, uint8_t *bytes)
{
    struct channel_grant *grant = &qp->grant[slot];
    uint64_t word = grant_word_of(grant);
    const uint64_t taken = word - CHANNEL_GRANTED + CHANNEL_TAKEN;
    if (CHANNEL_GRANT_STATE(word) != CHANNEL_GRANTED || !grant_is_about(grant, message))
        return 0;
    *answer = (struct message){.type = MESSAGE_ANSWER, .answer.entry[0] = grant->entry};
    answer->answer.place[0] = message_text((const char *)bytes, grant_copy_place(qp, grant->entry.leaf, (char *)bytes));
    __atomic_store_n(&grant->taken_at, clock_files(), __ATOMIC_RELAXED);
    return __atomic_compare_exchange_n(&grant->word, &word, taken, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED) ? taken : 0;
}

static bool grant_is_its_end(const struct channel_grant *grant, const struct message *message)
{
    return grant->type == MESSAGE_CREATE ? message->type == MESSAGE_COMMIT && message->commit.entry.type == DT_REG
                                         : message->type == MESSAGE_UNLINKED;
}

bool grant_end(struct channel_qp *qp, unsigned slot, uint64_t word, const struct message *message, bool *calls)
{
    struct channel_grant *grant = &qp->grant[slot];
    if (grant_word_of(grant) != word || !grant_is_its_end(grant, message))
        return false;
    *calls = grant->calls != 0;
    grant->made = message->type == MESSAGE_COMMIT ? message->commit.entry.ino : 0;
    return __atomic_compare_exchange_n(&grant->word, &word, word - CHANNEL_TAKEN + CHANNEL_DONE, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
}
