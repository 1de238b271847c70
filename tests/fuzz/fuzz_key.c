/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The key of a session, as it is read from its file. Its parser is nobody else's: the source stands here. */

#include "fuzz.h"
#include "session/key.c" /* NOLINT */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct session session = {.id = 0x5e551017};
    uint8_t key[SESSION_KEY_SIZE] = {0};
    char text[TEXT_MAX];
    struct text t;
    if (key_parse_key((const char *)data, size, &session, key) != 0)
        return 0;
    text_init(&t, text, sizeof text);
    for (size_t i = 0; i < sizeof key; i++) {
        text_number(&t, key[i] >> 4, 16);
        text_number(&t, key[i] & 15, 16);
    }
    fuzz_must(text_ok(&t) && memmem(data, size, text, t.length) != NULL);
    return 0;
}
