/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "fuzz.h"
#include "session/stamp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stamp stamp, again;
    char text[STAMP_SIZE_MAX];
    if (stamp_parse(&stamp, (const char *)data, size) != 0)
        return 0;
    int length = stamp_format(&stamp, text, sizeof text);
    fuzz_must(stamp.id != 0 && length > 0 && stamp_parse(&again, text, (size_t)length) == 0);
    fuzz_must(again.id == stamp.id && dirid_equal(again.directory, stamp.directory));
    return 0;
}
