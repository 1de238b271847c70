/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "peer/pack.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define BACK_SHIFT 4  /* in the control byte, as FRAME.md lists it */
#define BYTES_SHIFT 6 /* likewise */
#define NUMBER 2      /* bytes of a number up to twice PACK_REMEMBERED, and one */
#define GAP 2         /* equal bytes between others that cost less as literal ones than as a run's two numbers */
#define UNLIKE 1000   /* more words than an item has that is remembered */
#define NEAR 2        /* words in which an item may be other than one before so that no better one is looked for */

enum pack_client { CLIENT_SAME, CLIENT_NEXT, CLIENT_OTHER, CLIENT_KINDS };
enum pack_bytes { BYTES_SAME, BYTES_LITERAL, BYTES_RUNS };
enum pack_control { CONTROL_CLIENT = 3, CONTROL_FIELDS = 4, CONTROL_SIZE = 8 };

_Static_assert(PACK_REFERENCES == 1 << (BYTES_SHIFT - BACK_SHIFT), "the control byte names each");
_Static_assert(sizeof(struct frame_item) <= PACK_COUNTED, "an item unpacked takes what it counts");
_Static_assert(PACK_COUNTED + FRAME_ITEM_MAX <= PACK_UNPACKED_MAX, "the longest item fits alone");

/* The item that is so many before the last. */
static const struct pack_reference *pack_past_at(const struct pack_past *past, unsigned back)
{
    return &past->references[(past->count + PACK_REFERENCES - 1 - back) % PACK_REFERENCES];
}

static void pack_past_put(struct pack_past *past, const struct frame_item *item, const uint8_t *bytes)
{
    past->references[past->count++ % PACK_REFERENCES] =
        (struct pack_reference){.bytes = bytes,
                                .qp = item->qp,
                                .kind = item->kind,
                                .flags = item->flags,
                                .size = item->size <= PACK_REMEMBERED ? item->size : 0};
    past->client = item->client;
}

/* Packing. */

static uint8_t *pack_number_put(uint8_t *to, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

/* Of two texts: how many bytes are the same at the beginning. */
static uint32_t pack_prefix(const uint8_t *a, const uint8_t *b, uint32_t most)
{
    uint32_t length = 0;
    for (uint64_t words[2]; most - length >= 8; length += 8) {
        memcpy(&words[0], a + length, 8);
        memcpy(&words[1], b + length, 8);
        if (words[0] != words[1])
            return length + (uint32_t)__builtin_ctzll(words[0] ^ words[1]) / 8;
    }
    while (length < most && a[length] == b[length])
        length++;
    return length;
}

/* ... at the end. */
static uint32_t pack_suffix(const uint8_t *a, const uint8_t *b, uint32_t most)
{
    uint32_t length = 0;
    while (length < most && a[-1 - (int64_t)length] == b[-1 - (int64_t)length])
        length++;
    return length;
}

static uint32_t pack_smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* How many bytes from `at` on are told as they are: up to the next that are the same for more than GAP, or to `end`. */
static uint32_t pack_literal_length(const struct pack_reference *past, const uint8_t *bytes, uint32_t at, uint32_t end)
{
    const uint32_t both = pack_smaller(end, past->size);
    uint32_t same = 0;
    for (uint32_t i = at; i < both; i++) {
        same = bytes[i] == past->bytes[i] ? same + 1 : 0;
        if (same > GAP)
            return i + 1 - same - at;
    }
    return end - at;
}

/* Writes what the bytes have other than the reference's, as runs; NULL: that is no shorter than they are. */
static uint8_t *pack_runs_put(uint8_t *to, const struct pack_reference *past, const struct frame_item *item)
{
    const uint32_t both = pack_smaller(item->size, past->size);
    const uint32_t end = item->size - pack_suffix(item->bytes + item->size, past->bytes + past->size, both);
    const uint8_t *room = to + item->size;
    bool more = true;
    for (uint32_t at = 0; more;) {
        const uint32_t same = at < both ? pack_prefix(item->bytes + at, past->bytes + at, pack_smaller(end, both) - at) : 0;
        const uint32_t literal = pack_literal_length(past, item->bytes, at + same, end);
        more = at + same + literal < end;
        if (room - to < 2 * NUMBER + (int64_t)literal)
            return NULL;
        to = pack_number_put(to, same);
        to = pack_number_put(to, (uint64_t)literal << 1 | more);
        if (literal > 0)
            memcpy(to, item->bytes + at + same, literal);
        to += literal;
        at += same + literal;
    }
    return to;
}

/* In how many words of 8 bytes an item before is other than this one; UNLIKE: it is of another kind or size. */
static unsigned pack_distance(const struct pack_reference *reference, const struct frame_item *item)
{
    unsigned distance = 0;
    if (reference->size != item->size || reference->kind != item->kind)
        return UNLIKE;
    for (uint32_t at = 0; at + 8 <= item->size; at += 8)
        distance += memcmp(item->bytes + at, reference->bytes + at, 8) != 0;
    return distance;
}

/* How many before the last the item is by which this one is told: the last, unless it is unlike and another one is not. */
static unsigned pack_choose(const struct pack_past *past, const struct frame_item *item)
{
    unsigned least = UNLIKE, chosen = 0;
    for (unsigned back = 0; back < PACK_REFERENCES && least > NEAR; back++) {
        const unsigned distance = pack_distance(pack_past_at(past, back), item);
        if (distance < least)
            least = distance, chosen = back;
    }
    return chosen;
}

static enum pack_client pack_client_of(uint64_t difference)
{
    return difference == 0 ? CLIENT_SAME : difference == 1 ? CLIENT_NEXT : CLIENT_OTHER;
}

/* Writes all that goes before the bytes, but for the control byte: what that says of it is in *control. */
static uint8_t *pack_fields_put(uint8_t *to, const struct pack_past *past, const struct pack_reference *reference,
                                const struct frame_item *item, unsigned *control)
{
    const uint64_t difference = item->client - past->client;
    *control |= pack_client_of(difference);
    if (pack_client_of(difference) == CLIENT_OTHER)
        to = pack_number_put(to, difference << 1 ^ -(difference >> 63));
    if (item->qp != reference->qp || item->kind != reference->kind || item->flags != reference->flags) {
        *control |= CONTROL_FIELDS;
        to = pack_number_put(to, item->qp);
        to = pack_number_put(to, item->kind);
        to = pack_number_put(to, item->flags);
    }
    if (item->size != reference->size) {
        *control |= CONTROL_SIZE;
        to = pack_number_put(to, item->size);
    }
    return to;
}

/* Writes the bytes, or, where *control is to say so, leaves them to be told as they are. */
static uint8_t *pack_bytes_put(uint8_t *to, const struct pack_reference *reference, const struct frame_item *item,
                               unsigned *control)
{
    if (item->size == reference->size && (item->size == 0 || memcmp(item->bytes, reference->bytes, item->size) == 0)) {
        *control |= BYTES_SAME << BYTES_SHIFT;
        return to;
    }
    const bool both = item->size > 0 && item->size <= PACK_REMEMBERED && reference->size > 0;
    uint8_t *after = both ? pack_runs_put(to, reference, item) : NULL;
    *control |= (after != NULL ? BYTES_RUNS : BYTES_LITERAL) << BYTES_SHIFT;
    return after != NULL ? after : to;
}

static void pack_append(struct pack *pack, const uint8_t *bytes, size_t size)
{
    if (size > 0)
        memcpy(pack->bytes + pack->size, bytes, size);
    pack->size += (uint32_t)size;
}

static void pack_remember(struct pack *pack, const struct frame_item *item)
{
    uint8_t *bytes = pack->remembered[pack->past.count % PACK_REFERENCES];
    if (item->size > 0 && item->size <= PACK_REMEMBERED)
        memcpy(bytes, item->bytes, item->size);
    pack_past_put(&pack->past, item, bytes);
}

int pack_add(struct pack *pack, const struct frame_item *item)
{
    uint8_t coded[FRAME_ITEM_HEADER + PACK_REMEMBERED];
    if (item->size > FRAME_ITEM_MAX)
        return -EMSGSIZE;
    const unsigned back = pack_choose(&pack->past, item);
    const struct pack_reference *reference = pack_past_at(&pack->past, back);
    unsigned control = back << BACK_SHIFT;
    uint8_t *to = pack_fields_put(coded + 1, &pack->past, reference, item, &control);
    to = pack_bytes_put(to, reference, item, &control);
    coded[0] = (uint8_t)control;
    const uint32_t literal = control >> BYTES_SHIFT == BYTES_LITERAL ? item->size : 0;
    if (pack->size + (size_t)(to - coded) + literal > FRAME_PAYLOAD_MAX ||
        pack->unpacked + PACK_COUNTED + item->size > PACK_UNPACKED_MAX)
        return -ENOSPC;
    pack_append(pack, coded, (size_t)(to - coded));
    pack_append(pack, item->bytes, literal);
    pack->unpacked += PACK_COUNTED + item->size;
    pack_remember(pack, item);
    return 0;
}

void pack_reset(struct pack *pack)
{
    pack->size = pack->unpacked = 0;
    pack->past = (struct pack_past){.count = 0};
}

/* Unpacking. */

struct pack_input {
    const uint8_t *at, *end;
};

/* False: there is none, or it is above `most`, or longer than it had to be. */
static bool pack_number_take(struct pack_input *input, uint64_t most, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && input->at < input->end; shift += 7) {
        const uint64_t byte = *input->at++;
        if (shift == 63 && byte > 1)
            return false;
        *value |= (byte & 0x7f) << shift;
        if (byte <= 0x7f)
            return *value <= most && (byte > 0 || shift == 0);
    }
    return false;
}

static bool pack_client_take(struct pack_input *input, unsigned control, uint64_t before, uint64_t *client)
{
    const unsigned kind = control & CONTROL_CLIENT;
    uint64_t told = 0;
    if (kind == CLIENT_OTHER && !pack_number_take(input, UINT64_MAX, &told))
        return false;
    *client = before + (kind == CLIENT_OTHER ? told >> 1 ^ -(told & 1) : kind);
    return kind < CLIENT_KINDS;
}

static bool pack_fields_take(struct pack_input *input, unsigned control, const struct pack_reference *reference,
                             struct frame_item *item)
{
    uint64_t qp = reference->qp, kind = reference->kind, flags = reference->flags, size = reference->size;
    bool held = true;
    if (control & CONTROL_FIELDS)
        held = pack_number_take(input, UINT32_MAX, &qp) && pack_number_take(input, UINT16_MAX, &kind) &&
               pack_number_take(input, UINT16_MAX, &flags);
    if (held && control & CONTROL_SIZE)
        held = pack_number_take(input, FRAME_ITEM_MAX, &size);
    item->qp = (uint32_t)qp;
    item->kind = (uint16_t)kind;
    item->flags = (uint16_t)flags;
    item->size = (uint32_t)size;
    return held;
}

static bool pack_literal_take(struct pack_input *input, uint8_t *to, uint64_t length)
{
    if (length > (uint64_t)(input->end - input->at))
        return false;
    if (length > 0)
        memcpy(to, input->at, length);
    input->at += length;
    return true;
}

/* The rest of an item's bytes are those at the reference's end. */
static bool pack_rest_copy(uint8_t *to, const struct pack_reference *reference, uint64_t length)
{
    if (length > reference->size)
        return false;
    if (length > 0)
        memcpy(to, reference->bytes + reference->size - length, length);
    return true;
}

/* So many bytes as the reference has at the same place, then so many that are told; moves *at after them. */
static bool pack_run_take(struct pack_input *input, const struct pack_reference *reference, uint8_t *to, uint32_t size,
                          uint32_t *at, bool *more)
{
    const uint32_t both = pack_smaller(size, reference->size);
    uint64_t same, literal;
    if (!pack_number_take(input, both > *at ? both - *at : 0, &same) || !pack_number_take(input, UINT32_MAX, &literal))
        return false;
    if (same > 0)
        memcpy(to + *at, reference->bytes + *at, same);
    *at += (uint32_t)same;
    *more = literal & 1;
    literal >>= 1;
    if (literal > size - *at || !pack_literal_take(input, to + *at, literal))
        return false;
    *at += (uint32_t)literal;
    return true;
}

static bool pack_runs_take(struct pack_input *input, const struct pack_reference *reference, uint8_t *to, uint32_t size)
{
    uint32_t at = 0;
    for (bool more = true; more;)
        if (!pack_run_take(input, reference, to, size, &at, &more))
            return false;
    return pack_rest_copy(to + at, reference, size - at);
}

static bool pack_bytes_take(struct pack_input *input, unsigned control, const struct pack_reference *reference, uint8_t *to,
                            uint32_t size)
{
    switch (control >> BYTES_SHIFT) {
    case BYTES_SAME:
        return pack_rest_copy(to, reference, size);
    case BYTES_LITERAL:
        return pack_literal_take(input, to, size);
    case BYTES_RUNS:
        return pack_runs_take(input, reference, to, size);
    default:
        return false;
    }
}

static bool pack_item_take(struct pack_input *input, struct pack_past *past, struct pack_items *items)
{
    const unsigned control = *input->at++;
    const struct pack_reference *reference = pack_past_at(past, control >> BACK_SHIFT & (PACK_REFERENCES - 1));
    struct frame_item item;
    if (!pack_client_take(input, control, past->client, &item.client) || !pack_fields_take(input, control, reference, &item) ||
        PACK_COUNTED + item.size > PACK_UNPACKED_MAX - items->size)
        return false;
    uint8_t *bytes = items->bytes + items->size + PACK_COUNTED;
    if (!pack_bytes_take(input, control, reference, bytes, item.size))
        return false;
    item.bytes = bytes;
    memcpy(bytes - PACK_COUNTED, &item, sizeof item);
    items->size += PACK_COUNTED + item.size;
    pack_past_put(past, &item, bytes);
    return true;
}

int pack_open(struct pack_items *items, const uint8_t *payload, size_t size)
{
    struct pack_past past = {.count = 0};
    struct pack_input input = {payload, payload + size};
    items->size = items->at = 0;
    while (input.at < input.end)
        if (!pack_item_take(&input, &past, items)) {
            items->size = 0;
            return -EBADMSG;
        }
    return 0;
}

int pack_next(struct pack_items *items, struct frame_item *item)
{
    if (items->at >= items->size)
        return 0;
    memcpy(item, items->bytes + items->at, sizeof *item);
    items->at += PACK_COUNTED + item->size;
    return 1;
}
