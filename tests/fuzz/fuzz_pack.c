/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "fuzz.h"
#include "peer/pack.h"

static uint8_t payload[FRAME_PAYLOAD_MAX], unpacked[PACK_UNPACKED_MAX], again[PACK_UNPACKED_MAX];
static struct pack pack = {.bytes = payload};

static void fuzz_pack_compare(const struct frame_item *a, const struct frame_item *b)
{
    fuzz_must(a->client == b->client && a->qp == b->qp && a->kind == b->kind && a->flags == b->flags && a->size == b->size);
    fuzz_must(memcmp(a->bytes, b->bytes, a->size) == 0);
}

/* Packs what was unpacked. A stranger may have found a shorter payload than ours is: then it may end earlier. */
static unsigned fuzz_pack_add_all(struct pack_items *items)
{
    struct frame_item item;
    unsigned count = 0;
    pack_reset(&pack);
    while (pack_next(items, &item) == 1 && pack_add(&pack, &item) == 0)
        count++;
    return count;
}

/* What can be read is what its sender would have written, if not as it would have. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pack_items items = {.bytes = unpacked}, others = {.bytes = again};
    struct frame_item item, other;
    if (size > FRAME_PAYLOAD_MAX)
        return 0;
    if (pack_open(&items, data, size) != 0) {
        fuzz_must(pack_next(&items, &item) == 0);
        return 0;
    }
    const unsigned count = fuzz_pack_add_all(&items);
    fuzz_must(pack_open(&others, payload, pack.size) == 0);
    items.at = 0;
    for (unsigned i = 0; i < count; i++) {
        fuzz_must(pack_next(&items, &item) == 1 && pack_next(&others, &other) == 1);
        fuzz_pack_compare(&item, &other);
    }
    fuzz_must(pack_next(&others, &other) == 0);
    return 0;
}
