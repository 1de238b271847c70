/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "fuzz.h"
#include "union/marker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct marker marker, again;
    char text[MARKER_SIZE_MAX];
    if (marker_parse(&marker, (const char *)data, size) != 0)
        return 0;
    fuzz_must(strchr(marker.mirror, '/') == NULL && marker.path[0] != '/' && marker.id != 0);
    int length = marker_format(&marker, text, sizeof text);
    fuzz_must(length > 0 && marker_parse(&again, text, (size_t)length) == 0);
    fuzz_must(again.id == marker.id && dirid_equal(again.directory, marker.directory));
    fuzz_must(marker.root.ino == 0 || dirid_equal(again.root, marker.root));
    fuzz_must(strcmp(again.mirror, marker.mirror) == 0 && strcmp(again.path, marker.path) == 0);
    return 0;
}
