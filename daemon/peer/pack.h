/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#pragma once

/* The items of a frame, as its payload: each as what it has other than one of those before it in the same frame. FRAME.md says
 * what the bytes are.
 *
 * Pure: no I/O, no allocation, no state but the caller's; no length that was received is trusted. From any thread. */

#include <stddef.h>
#include <stdint.h>

#include "peer/frame.h"

#define PACK_REFERENCES 4   /* items before, any of which one may be told by */
#define PACK_REMEMBERED 512 /* bytes; of a longer item the bytes are not remembered */
#define PACK_COUNTED 32     /* bytes: what an item counts unpacked, besides its size */
/* What all items of a frame may count, so that few bytes do not unpack to any number. */
#define PACK_UNPACKED_MAX (4 * FRAME_MAX)

/* An item before. */
struct pack_reference {
    const uint8_t *bytes;
    uint32_t qp;
    uint16_t kind;
    uint16_t flags;
    uint32_t size; /* of its bytes, as far as they are remembered */
};

/* The last items of a frame; all zero: there is none. */
struct pack_past {
    struct pack_reference references[PACK_REFERENCES]; /* item N is at N modulo PACK_REFERENCES */
    uint64_t client;                                   /* the last item's */
    uint32_t count;                                    /* of all items of the frame */
};

/* A payload in the making. `bytes` is the caller's and has room for FRAME_PAYLOAD_MAX, `size` says how many are used; the
 * other fields are pack.c's. All zero but `bytes` at the start. It must not be copied or moved. */
struct pack {
    uint8_t *bytes;
    uint32_t size;
    uint32_t unpacked; /* what its items count */
    struct pack_past past;
    uint8_t remembered[PACK_REFERENCES][PACK_REMEMBERED];
};

/* Empties it, for the next frame. */
void pack_reset(struct pack *);
/* Appends: 0; -ENOSPC: not into this frame any more, which has one already; -EMSGSIZE: longer than FRAME_ITEM_MAX, into
 * none. With an error nothing has changed. The item's bytes are copied. */
int pack_add(struct pack *, const struct frame_item *);

/* A payload's items. `bytes` is the caller's and has room for PACK_UNPACKED_MAX; the other fields are pack.c's. */
struct pack_items {
    uint8_t *bytes;
    uint32_t size; /* used */
    uint32_t at;   /* of the next item */
};

/* Reads all items of a payload, which is of no use afterwards: 0, or -EBADMSG, and then there is none. */
int pack_open(struct pack_items *, const uint8_t *payload, size_t size);
/* The next one: 1, its bytes are good until the next pack_open; or 0. */
int pack_next(struct pack_items *, struct frame_item *);
