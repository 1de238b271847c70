/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "fuzz.h"
#include "index/record.h"

static void try_entry(const uint8_t *data, size_t size)
{
    struct record_entry entry;
    uint8_t bytes[16];
    if (record_entry_decode(&entry, data, size) != 0)
        return;
    fuzz_must(record_entry_encode(bytes, &entry) == size && memcmp(bytes, data, size) == 0);
}

static void try_dir(const uint8_t *data, size_t size)
{
    struct record_dir dir;
    uint8_t bytes[RECORD_DIR_SIZE];
    if (record_dir_decode(&dir, data, size) != 0)
        return;
    fuzz_must(strchr(dir.mirror, '/') == NULL && (dir.marker != 0) == (dir.mirror[0] != '\0'));
    fuzz_must(record_dir_encode(bytes, &dir) == size && memcmp(bytes, data, 40) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_entry(data, size);
    try_dir(data, size);
    return 0;
}
