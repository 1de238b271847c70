/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Names that come one after the other, a line each: what is predicted comes as predicted. */

#include "fuzz.h"
#include "home/sequence.h"

static void fuzz_sequence_check(const struct sequence *sequence)
{
    struct sequence next = *sequence;
    char name[RECORD_NAME_MAX], far[RECORD_NAME_MAX], again[RECORD_NAME_MAX];
    for (unsigned i = 1; i <= 40; i++) {
        size_t length = sequence_predict(&next, 1, name), far_length = sequence_predict(sequence, i, far);
        if (length == 0 || sequence->run == 0)
            return;
        fuzz_must(length <= sizeof name);
        fuzz_must(far_length == length && memcmp(name, far, length) == 0);
        fuzz_must(sequence_predict(&next, 0, again) == next.length && memcmp(again, next.name, next.length) == 0);
        fuzz_must(sequence_add(&next, name, length) == sequence->run + i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *at = data, *end = data + size;
    struct sequence sequence = {0};
    while (at < end) {
        char *line = fuzz_line(&at, end);
        size_t length = strlen(line);
        if (length > 0 && length <= RECORD_NAME_MAX)
            sequence_add(&sequence, line, length);
        free(line);
        fuzz_sequence_check(&sequence);
    }
    return 0;
}
