/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "fuzz.h"
#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct message message, again;
    if (message_decode(&message, data, size) != 0)
        return 0;
    fuzz_must(message_size(&message) == size);
    uint8_t *bytes = malloc(size);
    fuzz_must(message_encode(bytes, size, &message) == size);
    fuzz_must(message_decode(&again, bytes, size) == 0);
    fuzz_must(again.type == message.type && again.tag == message.tag && again.result == message.result);
    fuzz_must(memcmp(bytes, data, size) == 0);
    free(bytes);
    return 0;
}
