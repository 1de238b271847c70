/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Input: a record of a catalogue, or a trailer. */

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
    fuzz_must(directory.count <= CODEC_COUNT_MAX && directory.blocks <= directory.count);
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

static void try_block_key(const uint8_t *data, size_t size)
{
    uint64_t list;
    uint32_t number;
    uint8_t bytes[CODEC_BLOCK_KEY_SIZE];
    if (codec_block_key_decode(&list, &number, data, size) != 0)
        return;
    codec_block_key(bytes, list, number);
    fuzz_must(size == sizeof bytes && memcmp(bytes, data, size) == 0);
}

/* What its names are put into again is the block. */
static void try_block(const uint8_t *data, size_t size)
{
    struct codec_name name;
    uint8_t block[CODEC_BLOCK_MAX];
    size_t used = 0;
    for (size_t at = 0; at < size; fuzz_must(used == at)) {
        if (codec_block_next(&name, data, size, &at) != 0)
            return;
        fuzz_must(codec_name_is_valid(name.name, name.length) && memchr(name.name, '/', name.length) == NULL);
        if ((used = codec_block_add(block, used, &name)) == 0)
            return;
        fuzz_must(at <= size && memcmp(block, data, used) == 0);
    }
    fuzz_must(codec_sum(1, data, size) == codec_sum(1, block, used));
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
    try_block_key(data, size);
    try_block(data, size);
    try_marker(data, size);
    return 0;
}
