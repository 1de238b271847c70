/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "fuzz.h"
#include "wire/message.h"

static void fuzz_decoded(const uint8_t *data, size_t size)
{
    struct message message, again;
    if (message_decode(&message, data, size) != 0)
        return;
    fuzz_must(message_size(&message) == size);
    uint8_t *bytes = malloc(size);
    fuzz_must(message_encode(bytes, size, &message) == size);
    fuzz_must(message_decode(&again, bytes, size) == 0);
    fuzz_must(again.type == message.type && again.tag == message.tag && again.result == message.result);
    fuzz_must(memcmp(bytes, data, size) == 0);
    free(bytes);
}

/* Whatever version it says: the corpus outlives versions. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint16_t version = WIRE_VERSION;
    uint8_t *bytes = malloc(size + 1);
    fuzz_must(bytes != NULL);
    memcpy(bytes, data, size);
    if (size >= sizeof version)
        memcpy(bytes, &version, sizeof version);
    fuzz_decoded(bytes, size);
    free(bytes);
    return 0;
}
