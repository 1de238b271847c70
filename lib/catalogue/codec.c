/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "catalogue/codec.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define CODEC_MAGIC "shnt-cat"
#define CODEC_MAGIC_SIZE 8
#define CODEC_BYTE_ORDER 0x01020304u

/* Big-endian, so that the order of the keys' bytes is that of the numbers. */
static uint8_t *codec_put_key(uint8_t *to, uint64_t number)
{
    number = htobe64(number);
    return (uint8_t *)memcpy(to, &number, sizeof number) + sizeof number;
}

static uint64_t codec_get_key(const void *from)
{
    uint64_t number;
    memcpy(&number, from, sizeof number);
    return be64toh(number);
}

static uint8_t *codec_put64(uint8_t *to, uint64_t number)
{
    number = htole64(number);
    return (uint8_t *)memcpy(to, &number, sizeof number) + sizeof number;
}

static uint64_t codec_get64(const uint8_t *from)
{
    uint64_t number;
    memcpy(&number, from, sizeof number);
    return le64toh(number);
}

#define CODEC_PUBLIC 1                                               /* of a directory's flags */
#define CODEC_BLOCK_NAMES (CODEC_BLOCK_MAX / (CODEC_NAME_FIXED + 1)) /* at most */

void codec_about_encode(uint8_t to[CODEC_ABOUT_SIZE], struct dirid root)
{
    const uint32_t format = htole32(CATALOGUE_FORMAT);
    memcpy(to, CODEC_MAGIC, CODEC_MAGIC_SIZE);
    memcpy(to + CODEC_MAGIC_SIZE, &format, sizeof format);
    codec_put64(codec_put64(to + 12, root.ino), root.birth);
}

int codec_about_decode(struct dirid *root, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    uint32_t format;
    if (size != CODEC_ABOUT_SIZE || memcmp(from, CODEC_MAGIC, CODEC_MAGIC_SIZE) != 0)
        return -EBADMSG;
    memcpy(&format, from + CODEC_MAGIC_SIZE, sizeof format);
    if (le32toh(format) != CATALOGUE_FORMAT)
        return -EBADMSG;
    *root = (struct dirid){codec_get64(from + 12), codec_get64(from + 20)};
    return 0;
}

void codec_total_encode(uint8_t to[CODEC_TOTAL_SIZE], uint64_t total)
{
    codec_put64(to, total);
}

int codec_total_decode(uint64_t *total, const void *bytes, size_t size)
{
    if (size != CODEC_TOTAL_SIZE)
        return -EBADMSG;
    *total = codec_get64(bytes);
    return 0;
}

void codec_directory_key(uint8_t to[CODEC_DIRECTORY_KEY_SIZE], struct dirid id)
{
    codec_put_key(codec_put_key(to, id.ino), id.birth);
}

void codec_directory_encode(uint8_t to[CODEC_DIRECTORY_SIZE], const struct codec_directory *directory)
{
    uint8_t *at = codec_put64(codec_put64(to, (uint64_t)directory->mtime), (uint64_t)directory->ctime);
    at = codec_put64(codec_put64(at, directory->list), directory->count);
    at = codec_put64(codec_put64(at, directory->blocks), directory->sum);
    codec_put64(at, directory->is_public ? CODEC_PUBLIC : 0);
}

int codec_directory_decode(struct codec_directory *directory, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    if (size != CODEC_DIRECTORY_SIZE)
        return -EBADMSG;
    *directory = (struct codec_directory){.mtime = (int64_t)codec_get64(from),
                                          .ctime = (int64_t)codec_get64(from + 8),
                                          .list = codec_get64(from + 16),
                                          .count = codec_get64(from + 24),
                                          .blocks = codec_get64(from + 32),
                                          .sum = codec_get64(from + 40),
                                          .is_public = codec_get64(from + 48) == CODEC_PUBLIC};
    if (codec_get64(from + 48) > CODEC_PUBLIC)
        return -EBADMSG;
    if ((directory->list == 0) != (directory->count == 0) || directory->count > CODEC_COUNT_MAX)
        return -EBADMSG;
    const bool fits = directory->blocks <= directory->count && directory->count <= directory->blocks * CODEC_BLOCK_NAMES;
    return fits && directory->blocks <= UINT32_MAX ? 0 : -EBADMSG;
}

bool codec_name_is_valid(const char *name, size_t length)
{
    if (length == 0 || length > RECORD_NAME_MAX || memchr(name, '/', length) != NULL || memchr(name, '\0', length) != NULL)
        return false;
    return name[0] != '.' || (length != 1 && (length != 2 || name[1] != '.'));
}

void codec_list(uint8_t to[CODEC_LIST_SIZE], uint64_t list)
{
    codec_put_key(to, list);
}

void codec_block_key(uint8_t to[CODEC_BLOCK_KEY_SIZE], uint64_t list, uint32_t number)
{
    number = htobe32(number);
    memcpy(codec_put_key(to, list), &number, sizeof number);
}

int codec_block_key_decode(uint64_t *list, uint32_t *number, const void *bytes, size_t size)
{
    if (size != CODEC_BLOCK_KEY_SIZE)
        return -EBADMSG;
    memcpy(number, (const uint8_t *)bytes + CODEC_LIST_SIZE, sizeof *number);
    *number = be32toh(*number);
    *list = codec_get_key(bytes);
    return *list != 0 ? 0 : -EBADMSG;
}

size_t codec_block_add(uint8_t block[CODEC_BLOCK_MAX], size_t used, const struct codec_name *name)
{
    if (CODEC_BLOCK_MAX - used < CODEC_NAME_FIXED + name->length)
        return 0;
    uint8_t *at = codec_put64(block + used, name->ino);
    *at++ = name->type;
    *at++ = (uint8_t)name->length;
    memcpy(at, name->name, name->length);
    return used + CODEC_NAME_FIXED + name->length;
}

int codec_block_next(struct codec_name *name, const uint8_t *block, size_t size, size_t *at)
{
    if (*at > size || size - *at < CODEC_NAME_FIXED)
        return -EBADMSG;
    const uint8_t *from = block + *at;
    *name = (struct codec_name){
        .name = (const char *)from + CODEC_NAME_FIXED, .length = from[9], .ino = codec_get64(from), .type = from[8]};
    *at += CODEC_NAME_FIXED + name->length;
    if (*at > size || !record_type_is_known(name->type))
        return -EBADMSG;
    return codec_name_is_valid(name->name, name->length) ? 0 : -EBADMSG;
}

uint64_t codec_sum(uint64_t sum, const void *block, size_t size)
{
    return record_sum(block, size, sum);
}

size_t codec_marker_encode(uint8_t to[CODEC_MARKER_MAX], const struct codec_marker *marker)
{
    uint8_t *at = codec_put64(codec_put64(to, (uint64_t)marker->mtime), (uint64_t)marker->ctime);
    at = codec_put64(codec_put64(at, marker->directory.ino), marker->directory.birth);
    at = codec_put64(codec_put64(at, marker->root.ino), marker->root.birth);
    memcpy(codec_put64(at, marker->id), marker->mirror, marker->length);
    return CODEC_MARKER_FIXED + marker->length;
}

int codec_marker_decode(struct codec_marker *marker, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    if (size <= CODEC_MARKER_FIXED || size >= CODEC_MARKER_MAX)
        return -EBADMSG;
    *marker = (struct codec_marker){.mtime = (int64_t)codec_get64(from),
                                    .ctime = (int64_t)codec_get64(from + 8),
                                    .directory = {codec_get64(from + 16), codec_get64(from + 24)},
                                    .root = {codec_get64(from + 32), codec_get64(from + 40)},
                                    .id = codec_get64(from + 48),
                                    .mirror = (const char *)from + CODEC_MARKER_FIXED,
                                    .length = size - CODEC_MARKER_FIXED};
    return codec_name_is_valid(marker->mirror, marker->length) && marker->id != 0 ? 0 : -EBADMSG;
}

/* As it stands in a file. The numbers are the machine's own, as LMDB's are before it. */
struct codec_trailer_layout {
    char magic[CODEC_MAGIC_SIZE];
    uint32_t byte_order, format, word_size, zero;
    uint64_t ino, birth, bytes;
    uint8_t hash[CODEC_HASH_SIZE];
};
_Static_assert(sizeof(struct codec_trailer_layout) == CODEC_TRAILER_SIZE, "without padding");

void codec_trailer_encode(uint8_t to[CODEC_TRAILER_SIZE], const struct codec_trailer *trailer)
{
    struct codec_trailer_layout layout = {.byte_order = CODEC_BYTE_ORDER,
                                          .format = CATALOGUE_FORMAT,
                                          .word_size = sizeof(size_t),
                                          .ino = trailer->root.ino,
                                          .birth = trailer->root.birth,
                                          .bytes = trailer->bytes};
    memcpy(layout.magic, CODEC_MAGIC, CODEC_MAGIC_SIZE);
    memcpy(to, &layout, sizeof layout);
}

int codec_trailer_decode(struct codec_trailer *trailer, const void *bytes, size_t size)
{
    struct codec_trailer_layout layout;
    if (size != sizeof layout)
        return -EBADMSG;
    memcpy(&layout, bytes, sizeof layout);
    if (memcmp(layout.magic, CODEC_MAGIC, CODEC_MAGIC_SIZE) != 0 || layout.byte_order != CODEC_BYTE_ORDER)
        return -EBADMSG;
    if (layout.format != CATALOGUE_FORMAT || layout.word_size != sizeof(size_t) || layout.zero != 0)
        return -EBADMSG;
    *trailer = (struct codec_trailer){{layout.ino, layout.birth}, layout.bytes};
    return 0;
}
