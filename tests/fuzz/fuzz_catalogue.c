/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Input: a record of a catalogue, or a trailer; a name's begins with a byte that says how long its key is. */

#include "catalogue/codec.h"
#include "fuzz.h"

static void try_about(const uint8_t *data, size_t size)
{
    struct dirid root;
    uint8_t bytes[CODEC_ABOUT_SIZE];
    if (codec_about_decode(&root, data, size) != 0)
        return;
    codec_about_encode(bytes, root);
    fuzz_must(size == sizeof bytes && memcmp(bytes, data, size) == 0);
}

static void try_directory(const uint8_t *data, size_t size)
{
    struct codec_directory directory;
    uint8_t bytes[CODEC_DIRECTORY_SIZE];
    if (codec_directory_decode(&directory, data, size) != 0)
        return;
    codec_directory_encode(bytes, &directory);
    fuzz_must(size == sizeof bytes && memcmp(bytes, data, size) == 0);
    fuzz_must(directory.count <= CODEC_COUNT_MAX && directory.length <= CODEC_COUNT_MAX * RECORD_NAME_MAX);
}

static void try_trailer(const uint8_t *data, size_t size)
{
    struct codec_trailer trailer;
    uint8_t bytes[CODEC_TRAILER_SIZE];
    if (codec_trailer_decode(&trailer, data, size) != 0)
        return;
    codec_trailer_encode(bytes, &trailer);
    fuzz_must(size == sizeof bytes && memcmp(bytes, data, size - CODEC_HASH_SIZE) == 0);
}

static void try_name(const uint8_t *data, size_t size)
{
    struct codec_name name;
    uint8_t key[CODEC_NAME_KEY_MAX], value[CODEC_NAME_SIZE];
    if (size == 0 || data[0] > size - 1)
        return;
    const uint8_t *from = data + 1;
    const size_t key_size = data[0], value_size = size - 1 - key_size;
    if (codec_name_decode(&name, from, key_size, from + key_size, value_size) != 0)
        return;
    fuzz_must(codec_name_is_valid(name.name, name.length) && memchr(name.name, '/', name.length) == NULL);
    fuzz_must(codec_name_encode(key, value, &name) == key_size && memcmp(key, from, key_size) == 0);
    fuzz_must(value_size == sizeof value && memcmp(value, from + key_size, value_size) == 0);
    fuzz_must(codec_sum(1, &name) == codec_sum(1, &name));
}

static void try_marker(const uint8_t *data, size_t size)
{
    struct codec_marker marker;
    uint8_t bytes[CODEC_MARKER_MAX];
    if (codec_marker_decode(&marker, data, size) != 0)
        return;
    fuzz_must(codec_name_is_valid(marker.mirror, marker.length) && marker.length < RECORD_MIRROR_MAX);
    fuzz_must(codec_marker_encode(bytes, &marker) == size && memcmp(bytes, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_about(data, size);
    try_directory(data, size);
    try_trailer(data, size);
    try_name(data, size);
    try_marker(data, size);
    return 0;
}
