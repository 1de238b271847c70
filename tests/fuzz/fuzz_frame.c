/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include <sodium.h>

#include "fuzz.h"
#include "peer/frame.h"

/* The receiver of the frames of the corpus. */
static struct frame_self fuzz_frame_receiver(void)
{
    struct frame_self self = {.session = 0x5e551017, .epoch = 7, .instance = 0x2222, .member = 2};
    for (int i = 0; i < FRAME_KEY; i++)
        self.key[i] = (uint8_t)i;
    return self;
}

/* What opens is what its sender would have sealed. */
static void open_frame(const uint8_t *data, size_t size)
{
    struct frame_self self = fuzz_frame_receiver();
    struct frame frame;
    int code = frame_open(&frame, data, size, &self);
    fuzz_must(code >= 0 || (frame.payload == NULL && frame.size == 0));
    if (code < 0)
        return;
    uint8_t *bytes = malloc(size);
    self.epoch = frame.epoch;
    self.instance = frame.sender_instance;
    self.member = frame.sender;
    fuzz_must(frame_seal(bytes, size, &frame, &self) == (int)size && memcmp(bytes, data, size) == 0);
    free(bytes);
}

/* As it is, and with the hash that a member of the session would have given it: nothing after the hash would
 * be reached otherwise. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t hash = FRAME_HEADER - 16;
    struct frame_self self = fuzz_frame_receiver();
    crypto_generichash_state state;
    open_frame(data, size);
    if (size < FRAME_HEADER)
        return 0;
    uint8_t *copy = malloc(size);
    memcpy(copy, data, size);
    crypto_generichash_init(&state, self.key, FRAME_KEY, 16);
    crypto_generichash_update(&state, copy, hash);
    crypto_generichash_update(&state, copy + FRAME_HEADER, size - FRAME_HEADER);
    crypto_generichash_final(&state, copy + hash, 16);
    open_frame(copy, size);
    free(copy);
    return 0;
}
