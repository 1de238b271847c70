/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "peer/frame.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#define HASH 16
#define HASHED (FRAME_HEADER - HASH) /* the header's part before the hash; the payload follows it */

_Static_assert(HASH >= crypto_generichash_BYTES_MIN && FRAME_KEY == crypto_generichash_KEYBYTES, "what libsodium takes");

static const uint8_t magic[4] = {'s', 'h', 'f', 'r'};

/* The header as FRAME.md lists it. */
struct header {
    uint8_t magic[4];
    uint16_t version, zero;
    uint64_t session, epoch;
    uint64_t sender_instance, receiver_instance;
    uint64_t sequence, received;
    uint16_t sender, receiver;
    uint32_t size;
    uint8_t hash[HASH];
};

_Static_assert(sizeof(struct header) == FRAME_HEADER, "no padding travels");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little-endian, and so are both hosts");

int frame_start(void)
{
    return sodium_init() < 0 ? -ENOSYS : 0;
}

static void frame_hash_of(uint8_t hash[HASH], const uint8_t *bytes, uint32_t payload, const uint8_t *key)
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, key, FRAME_KEY, HASH);
    crypto_generichash_update(&state, bytes, HASHED);
    crypto_generichash_update(&state, bytes + FRAME_HEADER, payload);
    crypto_generichash_final(&state, hash, HASH);
}

int frame_seal(uint8_t *to, size_t room, const struct frame *frame, const struct frame_self *self)
{
    struct header header = {
        .version = FRAME_VERSION,
        .session = self->session,
        .epoch = self->epoch,
        .sender_instance = self->instance,
        .receiver_instance = frame->receiver_instance,
        .sequence = frame->sequence,
        .received = frame->received,
        .sender = self->member,
        .receiver = frame->receiver,
        .size = frame->size,
    };
    if (frame->size > FRAME_PAYLOAD_MAX || room < FRAME_HEADER + (size_t)frame->size)
        return -EMSGSIZE;
    memcpy(header.magic, magic, sizeof magic);
    if (frame->size > 0 && frame->payload != to + FRAME_HEADER)
        memmove(to + FRAME_HEADER, frame->payload, frame->size);
    memcpy(to, &header, HASHED);
    frame_hash_of(to + HASHED, to, frame->size, self->key);
    return (int)(FRAME_HEADER + frame->size);
}

/* What can be said before the hash is computed: most that is not for us costs no more than this. */
static int frame_is_for_us(const struct header *header, size_t size, const struct frame_self *self)
{
    if (memcmp(header->magic, magic, sizeof magic) != 0)
        return -EBADMSG;
    if (header->version != FRAME_VERSION)
        return -EPROTO;
    if (header->zero != 0 || header->size != size - FRAME_HEADER)
        return -EBADMSG;
    if (header->session != self->session)
        return -ESTALE;
    if (header->receiver != self->member || header->receiver_instance != self->instance)
        return -EHOSTUNREACH;
    return 0;
}

static int frame_is_authentic(const struct header *header, const uint8_t *bytes, const struct frame_self *self)
{
    uint8_t hash[HASH];
    frame_hash_of(hash, bytes, header->size, self->key);
    return sodium_memcmp(hash, header->hash, HASH) == 0 ? 0 : -EACCES;
}

int frame_open(struct frame *frame, const uint8_t *bytes, size_t size, const struct frame_self *self)
{
    struct header header;
    int code = size < FRAME_HEADER || size > FRAME_MAX ? -EBADMSG : 0;
    *frame = (struct frame){0};
    if (code != 0)
        return code;
    memcpy(&header, bytes, sizeof header);
    code = frame_is_for_us(&header, size, self);
    if (code == 0)
        code = frame_is_authentic(&header, bytes, self);
    if (code == 0 && header.epoch < self->epoch)
        code = -ESTALE;
    if (code != 0)
        return code;
    *frame = (struct frame){
        .epoch = header.epoch,
        .sender_instance = header.sender_instance,
        .receiver_instance = header.receiver_instance,
        .sequence = header.sequence,
        .received = header.received,
        .sender = header.sender,
        .receiver = header.receiver,
        .size = header.size,
        .payload = bytes + FRAME_HEADER,
    };
    return header.epoch > self->epoch ? FRAME_NEWER : 0;
}
