/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "request/grant.h"

#include <dirent.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

/* What grants are made of: a regular file that goes where the placement says, the end of one, or a rename of one within its
 * directory that replaces nothing. */
static bool grant_may_be_granted(const struct message *message)
{
    switch (message->type) {
    case MESSAGE_CREATE:
        return message->flags == 0 && message->create.entry.type == DT_REG;
    case MESSAGE_UNLINK:
        return message->flags == 0;
    case MESSAGE_RENAME:
        return (message->flags & ~MESSAGE_NOREPLACE) == 0 && dirid_equal(message->dir, message->rename.to_dir);
    default:
        return false;
    }
}

/* May be torn, as what follows: taking it compares the word again. */
static bool grant_has_old(const struct channel_grant *grant, const struct message_text *name)
{
    return grant->name_length == name->length && name->length <= sizeof grant->name &&
           memcmp(grant->name, name->text, name->length) == 0;
}

static bool grant_has_new(const struct channel_grant *grant, const struct message_text *name)
{
    const size_t at = __atomic_load_n(&grant->name_length, __ATOMIC_RELAXED);
    return grant->to_length == name->length && at + name->length <= sizeof grant->name &&
           memcmp(&grant->name[at], name->text, name->length) == 0;
}

static uint64_t grant_word_of(const struct channel_grant *grant)
{
    return __atomic_load_n(&grant->word, __ATOMIC_ACQUIRE);
}

/* Of a name that was made and may be renamed then: is it this that the process does next? */
static bool grant_goes_on(const struct channel_grant *grant, uint64_t word)
{
    return CHANNEL_GRANT_STATE(word) == CHANNEL_DONE && grant->type == MESSAGE_CREATE && grant->to_length > 0 &&
           grant->made != 0;
}

/* May it be taken, and for that? */
static bool grant_is_granted(const struct channel_grant *grant, uint64_t word, const struct message *message)
{
    const bool goes_on = grant_goes_on(grant, word), fits = message->type == (goes_on ? MESSAGE_RENAME : grant->type);
    return (goes_on || CHANNEL_GRANT_STATE(word) == CHANNEL_GRANTED) && fits && dirid_equal(grant->dir, message->dir) &&
           grant_has_old(grant, &message->name) &&
           (message->type != MESSAGE_RENAME || grant_has_new(grant, &message->rename.to_name));
}

static bool grant_makes(const struct channel_grant *grant, const struct message_text *name)
{
    return grant->type == MESSAGE_RENAME ? grant_has_new(grant, name)
                                         : grant->type == MESSAGE_CREATE && grant_has_old(grant, name);
}

/* The other name of what is, or was, to be made first: nobody has made that. */
static bool grant_will_make(const struct channel_grant *grant, uint64_t word, const struct message_text *name)
{
    const enum channel_granted state = CHANNEL_GRANT_STATE(word);
    return grant->type == MESSAGE_CREATE && grant->to_length > 0 && state >= CHANNEL_GRANTED && state <= CHANNEL_DONE &&
           grant_has_new(grant, name);
}

static bool grant_takes_away(const struct channel_grant *grant, const struct message_text *name)
{
    return grant->type != MESSAGE_CREATE && grant_has_old(grant, name);
}

static bool grant_is_of_name(const struct channel_grant *grant, struct dirid dir, const struct message_text *name, bool is_new)
{
    const uint64_t word = grant_word_of(grant);
    if (!dirid_equal(grant->dir, dir))
        return false;
    return (is_new && grant_will_make(grant, word, name)) ||
           (CHANNEL_GRANT_STATE(word) == CHANNEL_GRANTED &&
            (is_new ? grant_makes(grant, name) : grant_takes_away(grant, name)));
}

/* The one that was taken last may go on. */
static const struct channel_grant *grant_from(const struct channel_qp *qp, unsigned first, unsigned i)
{
    return &qp->grant[(first + CHANNEL_GRANTS - 1 + i) % CHANNEL_GRANTS];
}

bool grant_has_name(const struct channel_qp *qp, unsigned first, struct dirid dir, const struct message_text *name, bool is_new)
{
    if (__atomic_load_n(&qp->grants, __ATOMIC_RELAXED) == 0)
        return false;
    for (unsigned i = 0; i < CHANNEL_GRANTS; i++)
        if (grant_is_of_name(grant_from(qp, first, i), dir, name, is_new))
            return true;
    return false;
}

int grant_find(const struct channel_qp *qp, const struct message *message, unsigned first)
{
    if (__atomic_load_n(&qp->grants, __ATOMIC_RELAXED) == 0 || !grant_may_be_granted(message))
        return -1;
    for (unsigned i = 0; i < CHANNEL_GRANTS; i++) {
        const struct channel_grant *grant = grant_from(qp, first, i);
        if (grant_is_granted(grant, grant_word_of(grant), message))
            return (int)(grant - qp->grant);
    }
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

static void grant_answer(const struct channel_qp *qp, const struct channel_grant *grant, bool goes_on, struct message *answer,
                         uint8_t *bytes)
{
    const bool renames = goes_on || grant->type == MESSAGE_RENAME;
    *answer = (struct message){.type = renames ? MESSAGE_RENAME_ANSWER : MESSAGE_ANSWER, .answer.entry[0] = grant->entry};
    if (goes_on) {
        answer->answer.entry[0].state = RECORD_LIVE;
        answer->answer.entry[0].ino = grant->made;
    }
    answer->answer.place[0] = message_text((const char *)bytes, grant_copy_place(qp, grant->entry.leaf, (char *)bytes));
    if (!renames)
        return;
    answer->answer.entry[1] = answer->answer.entry[0];
    answer->answer.place[1] = answer->answer.place[0];
}

/* The order matters: the word, what it stands for, then the swap, which fails if that is another grant's by now. The time is
 * there before the daemon can see that it was taken. */
uint64_t grant_take(struct channel_qp *qp, unsigned slot, const struct message *message, struct message *answer, uint8_t *bytes)
{
    struct channel_grant *grant = &qp->grant[slot];
    uint64_t word = grant_word_of(grant);
    const bool goes_on = grant_goes_on(grant, word);
    const uint64_t taken = goes_on ? word - CHANNEL_DONE + CHANNEL_MOVING : word - CHANNEL_GRANTED + CHANNEL_TAKEN;
    if (!grant_is_granted(grant, word, message))
        return 0;
    grant_answer(qp, grant, goes_on, answer, bytes);
    __atomic_store_n(&grant->taken_at, clock_files(), __ATOMIC_RELAXED);
    return __atomic_compare_exchange_n(&grant->word, &word, taken, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED) ? taken : 0;
}

static bool grant_is_its_end(const struct channel_grant *grant, uint64_t word, const struct message *message)
{
    switch (CHANNEL_GRANT_STATE(word) == CHANNEL_MOVING ? MESSAGE_RENAME : grant->type) {
    case MESSAGE_CREATE:
        return message->type == MESSAGE_COMMIT && message->commit.entry.type == DT_REG && message->commit.entry.ino != 0;
    case MESSAGE_UNLINK:
        return message->type == MESSAGE_UNLINKED;
    default:
        return message->type == MESSAGE_RENAMED && message->result == 0;
    }
}

_Static_assert(CHANNEL_DONE == CHANNEL_TAKEN + 1 && CHANNEL_MOVED == CHANNEL_MOVING + 1,
               "what is at work ends with the next state");

bool grant_end(struct channel_qp *qp, unsigned slot, uint64_t word, const struct message *message, bool *calls)
{
    struct channel_grant *grant = &qp->grant[slot];
    if (grant_word_of(grant) != word || !grant_is_its_end(grant, word, message))
        return false;
    *calls = grant->calls != 0 && CHANNEL_GRANT_STATE(word) == CHANNEL_TAKEN;
    if (message->type == MESSAGE_COMMIT)
        grant->made = message->commit.entry.ino;
    return __atomic_compare_exchange_n(&grant->word, &word, word + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}
